package desired

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// canonical writes the quantities of an object as the API server writes them. In another notation
// the value is the same, but another applier that writes it the canonical way would take the field
// from us, and we from it, for ever.
func canonical(d *draft) []error {
	var errs []error
	for _, path := range quantityPaths(d.kind) {
		errs = append(errs, rewrite(d.Manifest.Object, strings.Split(path, "."), "")...)
	}
	return errs
}

// quantityPaths are where a kind has quantities: "*" is every element of a list or map.
func quantityPaths(k schema.GroupKind) []string {
	var paths []string
	if at, ok := podPath(k); ok {
		for _, path := range podQuantities() {
			paths = append(paths, strings.Join(append(slices.Clone(at), "spec", path), "."))
		}
	}
	switch k {
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		paths = append(paths, "spec.resources.requests.*", "spec.resources.limits.*")
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		paths = append(paths, "spec.volumeClaimTemplates.*.spec.resources.requests.*", "spec.volumeClaimTemplates.*.spec.resources.limits.*")
	case schema.GroupKind{Kind: "PersistentVolume"}:
		paths = append(paths, "spec.capacity.*")
	case schema.GroupKind{Kind: "ResourceQuota"}:
		paths = append(paths, "spec.hard.*")
	case schema.GroupKind{Kind: "LimitRange"}:
		for _, field := range []string{"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"} {
			paths = append(paths, "spec.limits.*."+field+".*")
		}
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:
		for _, source := range []string{"resource", "containerResource", "pods", "object", "external"} {
			paths = append(paths, "spec.metrics.*."+source+".target.value", "spec.metrics.*."+source+".target.averageValue")
		}
		paths = append(paths, "spec.behavior.scaleUp.tolerance", "spec.behavior.scaleDown.tolerance")
	case schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"}:
		paths = append(paths, "overhead.podFixed.*")
	case schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:
		paths = append(paths, "capacity", "maximumVolumeSize")
	}
	return paths
}

// podQuantities are where the spec of a Pod has quantities.
func podQuantities() []string {
	paths := []string{
		"overhead.*", "resources.requests.*", "resources.limits.*",
		"volumes.*.emptyDir.sizeLimit",
		"volumes.*.downwardAPI.items.*.resourceFieldRef.divisor",
		"volumes.*.projected.sources.*.downwardAPI.items.*.resourceFieldRef.divisor",
		"volumes.*.ephemeral.volumeClaimTemplate.spec.resources.requests.*",
		"volumes.*.ephemeral.volumeClaimTemplate.spec.resources.limits.*",
	}
	for _, containers := range []string{"containers", "initContainers"} {
		for _, path := range []string{"resources.requests.*", "resources.limits.*", "env.*.valueFrom.resourceFieldRef.divisor"} {
			paths = append(paths, containers+".*."+path)
		}
	}
	return paths
}

// rewrite makes the quantities at a path below value canonical. at is where value is.
func rewrite(value any, path []string, at string) []error {
	var errs []error
	visit := func(key string, inner any, set func(any)) {
		at := strings.TrimPrefix(at+"."+key, ".")
		switch {
		case len(path) > 1:
			errs = append(errs, rewrite(inner, path[1:], at)...)
		case inner == nil:
		default:
			text, err := quantity(inner)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %w", at, err))
				return
			}
			set(text)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path[0] == "*" || path[0] == key {
				visit(key, v[key], func(q any) { v[key] = q })
			}
		}
	case []any:
		if path[0] == "*" {
			for i, item := range v {
				visit(strconv.Itoa(i), item, func(q any) { v[i] = q })
			}
		}
	}
	return errs
}

// quantity returns the canonical notation of a quantity, which may be a text or a number.
func quantity(value any) (string, error) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return "", fmt.Errorf(`is %s, which is not a quantity; write for example "500m" or "1Gi"`, shown(value))
	}
	if text = strings.TrimSpace(text); affordable(text) {
		if q, err := resource.ParseQuantity(text); err == nil {
			return q.String(), nil
		}
	}
	return "", fmt.Errorf(`is %.40q, which is not a quantity; write for example "500m" or "1Gi"`, text)
}

// affordable reports whether a quantity can be parsed in no time: the parser computes the power
// that an exponent asks for, which takes hours for "1e-999999999".
func affordable(text string) bool {
	const length, exponent = 60, 100
	if i := strings.LastIndexAny(text, "eE"); i >= 0 && i < len(text)-1 {
		n, err := strconv.Atoi(text[i+1:])
		return len(text) <= length && err == nil && -exponent <= n && n <= exponent
	}
	return len(text) <= length
}
