package desired

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// API groups with kinds that are treated in a way of their own.
const (
	groupAdmission  = "admissionregistration.k8s.io"
	groupAggregator = "apiregistration.k8s.io"
	groupExtensions = "apiextensions.k8s.io"
	groupRBAC       = "rbac.authorization.k8s.io"
)

func isNamespace(k schema.GroupKind) bool {
	return k == schema.GroupKind{Kind: "Namespace"}
}

func isCRD(k schema.GroupKind) bool {
	return k == schema.GroupKind{Group: groupExtensions, Kind: "CustomResourceDefinition"}
}

func isAPIService(k schema.GroupKind) bool {
	return k == schema.GroupKind{Group: groupAggregator, Kind: "APIService"}
}

func isWebhook(k schema.GroupKind) bool {
	return k.Group == groupAdmission && (k.Kind == "ValidatingWebhookConfiguration" || k.Kind == "MutatingWebhookConfiguration")
}

// definesAPI reports whether objects of other kinds cannot exist without an object of this kind.
func definesAPI(k schema.GroupKind) bool {
	return isNamespace(k) || isCRD(k) || isAPIService(k)
}

// ranks are the orders of one wave.
type ranks struct{ apply, remove int }

// Ranks that do not depend on the kind alone.
const (
	rankLate      = 1 // served by a workload of the set
	rankInstance  = 2
	rankRemoved   = -1 // not to be called any more when its workload goes
	rankInstances = -2
)

// canonical order of kinds: what others need comes first, and goes last.
func ranksOf(k schema.GroupKind) ranks {
	switch {
	case isNamespace(k):
		return ranks{-4, 3}
	case isWebhook(k):
		return ranks{-3, 1}
	case isCRD(k):
		return ranks{-2, rankRemoved}
	case isAPIService(k):
		return ranks{rankLate, rankRemoved}
	}
	switch k {
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "IngressClass"},
		schema.GroupKind{Group: "node.k8s.io", Kind: "RuntimeClass"},
		schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		schema.GroupKind{Group: "storage.k8s.io", Kind: "StorageClass"}:
		return ranks{-2, 4}
	case schema.GroupKind{Group: groupRBAC, Kind: "ClusterRole"}, schema.GroupKind{Group: groupRBAC, Kind: "Role"}:
		return ranks{-2, 0}
	case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}:
		return ranks{-1, 2}
	case schema.GroupKind{Group: groupRBAC, Kind: "ClusterRoleBinding"}, schema.GroupKind{Group: groupRBAC, Kind: "RoleBinding"}:
		return ranks{-1, 0}
	case schema.GroupKind{Kind: "Service"}:
		return ranks{0, 2}
	}
	return ranks{}
}

// rank returns the ranks of an object. A webhook configuration whose server is in the set comes after
// the server and goes before it, like all that needs one.
func (d *draft) rank() ranks {
	switch {
	case d.Managed:
		return ranks{rankInstance, rankInstances}
	case isWebhook(d.kind) && d.backed:
		return ranks{rankLate, rankRemoved}
	}
	return ranksOf(d.kind)
}

// Instances returns the keys of the items that are instances of types that the items, or more, add to
// the API. They are applied after the other items of their wave, when the types and what runs them
// work, and deleted before, while that is still so. An item that another one needs which is no
// instance cannot be, so it is left out, and so is what others cannot exist without.
func Instances(items []api.InventoryItem, more []api.TypeInfo) map[string]bool {
	exact, patterns := map[api.TypeInfo]bool{}, more
	for _, item := range items {
		for _, t := range item.ManagedTypes {
			exact[t] = true
		}
	}
	byKey, instances := map[string]api.InventoryItem{}, map[string]bool{}
	var others []string
	for _, item := range items {
		k := schema.GroupKind{Group: item.Group, Kind: item.Kind}
		byKey[item.Key()] = item
		if !definesAPI(k) && (exact[api.TypeInfo(k)] || exact[api.TypeInfo{Group: k.Group, Kind: "*"}] || Manages(patterns, k)) {
			instances[item.Key()] = true
			continue
		}
		others = append(others, item.Key())
	}
	for len(others) > 0 {
		item := byKey[others[len(others)-1]]
		others = others[:len(others)-1]
		for _, need := range item.DependsOn {
			if instances[need] {
				delete(instances, need)
				others = append(others, need)
			}
		}
	}
	return instances
}

// Manages reports whether a kind is among types, which may contain "*".
func Manages(types []api.TypeInfo, k schema.GroupKind) bool {
	return slices.ContainsFunc(types, func(t api.TypeInfo) bool {
		below, wildcard := strings.CutPrefix(t.Group, "*.")
		group := t.Group == "*" || t.Group == k.Group || wildcard && strings.HasSuffix(k.Group, "."+below)
		return group && (t.Kind == "*" || t.Kind == k.Kind)
	})
}

// types are what the objects of a set add to the API.
type types struct {
	crds     map[schema.GroupKind]*definition
	services map[schema.GroupVersion]*draft
}

// definition is what a CustomResourceDefinition says.
type definition struct {
	*draft
	namespaced bool
	served     []string
}

// findTypes reads the CustomResourceDefinitions and APIServices of the set.
func (s *set) findTypes() {
	s.types = types{crds: map[schema.GroupKind]*definition{}, services: map[schema.GroupVersion]*draft{}}
	for _, d := range s.all {
		switch {
		case isCRD(d.kind):
			s.define(d)
		case isAPIService(d.kind):
			s.serve(d)
		}
	}
}

func (s *set) define(d *draft) {
	kind := schema.GroupKind{Group: d.text("spec", "group"), Kind: d.text("spec", "names", "kind")}
	if kind.Group == "" || kind.Kind == "" {
		s.add("%s: spec.group and spec.names.kind must be set", d.title())
		return
	}
	def := &definition{draft: d, namespaced: d.text("spec", "scope") == "Namespaced"}
	for _, version := range d.maps("spec", "versions") {
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served && name != "" {
			def.served = append(def.served, name)
		}
	}
	if len(def.served) == 0 {
		s.add("%s: no version of %s is served; set served of one of spec.versions to true", d.title(), kind.Kind)
		return
	}
	d.Item.ManagedTypes = []api.TypeInfo{{Group: kind.Group, Kind: kind.Kind}}
	if other := s.types.crds[kind]; other != nil && other.Item.Name != d.Item.Name {
		s.add("%s and %s define the same kind %s; remove one", min(d.title(), other.title()), max(d.title(), other.title()), kind)
	}
	s.types.crds[kind] = def
}

// serve reads an APIService. One without a service is answered by the API server itself.
func (s *set) serve(d *draft) {
	if d.value("spec", "service") == nil {
		return
	}
	version := schema.GroupVersion{Group: d.text("spec", "group"), Version: d.text("spec", "version")}
	if version.Group == "" || version.Version == "" {
		s.add("%s: spec.group and spec.version must be set", d.title())
		return
	}
	d.Item.ManagedTypes = []api.TypeInfo{{Group: version.Group, Kind: "*"}}
	s.types.services[version] = d
}

// value returns a field of the manifest, nil if there is none.
func (d *draft) value(path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(d.Manifest.Object, path...)
	return value
}

// text returns a field that is a text, empty if it is not.
func (d *draft) text(path ...string) string {
	value, _ := d.value(path...).(string)
	return value
}

// maps returns the elements of a list that are maps.
func (d *draft) maps(path ...string) []map[string]any { return mapsOf(d.value(path...)) }

func mapsOf(value any) []map[string]any {
	list, _ := value.([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// DeleteRank is where a recorded object comes when it is deleted.
func DeleteRank(item api.InventoryItem) int {
	return ranksOf(schema.GroupKind{Group: item.Group, Kind: item.Kind}).remove
}
