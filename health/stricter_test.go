package health

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	cliutils "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// page is docs/health.md: which fields of a kind make it worse than kstatus says, and which kinds are ready as
// soon as they exist.
type page struct {
	beyond    map[schema.GroupKind][]string
	immediate []string
}

func readPage(t *testing.T) page {
	t.Helper()
	data, err := os.ReadFile("../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	p := page{beyond: map[schema.GroupKind][]string{}}
	row := regexp.MustCompile(`(?m)^\| ([a-z][a-z0-9.-]*) \| ([A-Z][A-Za-z, ]*) \|(?:.*\|)? ?([^|]*)\|$`)
	field := regexp.MustCompile("`((?:status|metadata)\\.[^`]*)`")
	for _, r := range row.FindAllStringSubmatch(string(data), -1) {
		for name := range strings.SplitSeq(r[2], ", ") {
			kind := schema.GroupKind{Group: r[1], Kind: name}
			if r[1] == "core" {
				kind.Group = ""
			}
			if _, twice := p.beyond[kind]; twice {
				t.Errorf("docs/health.md has %s twice", kind)
			}
			p.beyond[kind] = []string{}
			for _, f := range field.FindAllStringSubmatch(r[3], -1) {
				p.beyond[kind] = append(p.beyond[kind], f[1])
			}
		}
	}
	list, _, _ := strings.Cut(string(data), " are ready as soon as they exist.")
	list = list[strings.LastIndex(list, "\n\n")+2:]
	p.immediate = slices.Sorted(slices.Values(regexp.MustCompile(`[A-Z]\w+`).FindAllString(list, -1)))
	return p
}

// TestPage: docs/health.md has all kinds of which more is known than kstatus says, and no others but those that
// it explains.
func TestPage(t *testing.T) {
	p := readPage(t)
	for kind := range table {
		if p.beyond[kind] == nil {
			t.Errorf("docs/health.md lacks %s", kind)
		}
	}
	for kind := range p.beyond {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind.WithVersion("v1"))
		if _, known := table[kind]; !known && cliutils.GetLegacyConditionsFn(u) == nil && kind.Kind != "Ingress" {
			t.Errorf("docs/health.md has %s, of which nothing is known", kind)
		}
	}
	var names []string
	for kind := range immediate {
		names = append(names, kind.Kind)
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, p.immediate); diff != "" {
		t.Errorf("kinds that docs/health.md calls ready as soon as they exist (-want +got):\n%s", diff)
	}
}

// elsewhere are the fields that say what another one lacks, by the path of the result.
var elsewhere = map[string]string{ //nolint:gochecknoglobals // a constant table
	conditionPath("Complete"):     "status.startTime",
	"status.readyReplicas":        observedPath,
	"status.loadBalancer.ingress": "metadata.finalizers",
}

// byServer are the conditions that may be missing of what is not ready: no cluster lacks the API server.
var byServer = map[schema.GroupKind]string{ //nolint:gochecknoglobals // a constant table
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: conditionPath("NamesAccepted"),
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             conditionPath("Available"),
}

// TestNeverStricter goes through all kinds with nearly all pairs of what their specs and statuses may hold. No object
// is worse than kstatus says unless docs/health.md names a field that says so, and that field is there.
func TestNeverStricter(t *testing.T) {
	p := readPage(t)
	p.beyond[schema.GroupKind{Group: "example.org", Kind: "Widget"}] = nil
	for kind := range immediate {
		p.beyond[kind] = nil
	}
	objects := 0
	for kind, documented := range p.beyond {
		used := map[string]bool{}
		for _, obj := range objectsOf(t, kind) {
			objects++
			got := Of(obj, Hints{}, nil)
			if !isWorse(t, got, obj) {
				continue
			}
			evidence := got.Path
			if other := elsewhere[got.Path]; other != "" {
				evidence = other
			}
			used[evidence] = true
			outdated := got.Path == conditionPath("Ready") && fields(obj.Object).condition("Ready").outdated
			present := fields(obj.Object).holds(evidence) || byServer[kind] == evidence
			if !present || !outdated && !slices.Contains(documented, evidence) {
				text, _ := json.Marshal(obj)
				t.Fatalf("%s %s, because of %s (there: %t), and kstatus does not say so; docs/health.md has %q\n%s",
					kind, got.Why, evidence, present, documented, text)
			}
		}
		for _, path := range documented {
			if !used[path] {
				t.Errorf("docs/health.md says of %s that it depends on %s, and no object does", kind, path)
			}
		}
	}
	if objects < 40_000 {
		t.Errorf("%d objects", objects)
	}
}

// isWorse reports whether a result is worse than what kstatus says of the object.
func isWorse(t *testing.T, got Result, obj *unstructured.Unstructured) bool {
	t.Helper()
	order := []Status{Current, InProgress, Failed}
	if slices.Index(order, got.Status) <= 0 {
		return false
	}
	computed, err := cliutils.Compute(obj)
	return err == nil && slices.Index(order, got.Status) > slices.Index(order, Status(computed.Status))
}

// holds reports whether an object has a field, or a condition that is not a default.
func (o fields) holds(path string) bool {
	if t, is := strings.CutPrefix(path, "status.conditions["); is {
		list, _, _ := unstructured.NestedSlice(o, "status", "conditions")
		return slices.ContainsFunc(list, func(c any) bool {
			m, _ := c.(map[string]any)
			return m["type"] == strings.TrimSuffix(t, "]") && m["lastTransitionTime"] != "1970-01-01T00:00:00Z"
		})
	}
	_, found, _ := unstructured.NestedFieldNoCopy(o, strings.Split(path, ".")...)
	return found
}

// objectsOf returns objects of a kind with no status, an empty one, and all pairs of what statuses hold.
func objectsOf(t *testing.T, kind schema.GroupKind) (out []*unstructured.Unstructured) {
	t.Helper()
	pieces := append(conditionsOf(kind),
		"status: {}", "status: {observedGeneration: 1}", "status: {observedGeneration: 2}", "status: {startTime: '2026-01-02T03:04:05Z'}",
		"status: {replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, currentReplicas: 2, fullyLabeledReplicas: 2}",
		"status: {replicas: 2, readyReplicas: 1}", "status: {desiredNumberScheduled: 1}", "status: {loadBalancer: {}}",
		"status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}", "status: {currentReplicas: 0, desiredReplicas: 0}",
		"status: {readyToUse: true}", "status: {readyToUse: false}", "status: {error: {message: gone}}",
		"status: {health: {status: Healthy}}", "status: {health: {status: Progressing}}", "status: {health: {}}", "status: fine",
		"status: {containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}",
		"metadata: {finalizers: [service.kubernetes.io/load-balancer-cleanup]}", "metadata: {generation: 0}", "spec: {}",
	)
	for _, phase := range []string{"Pending", "Available", "Bound", "Released", "Lost", "Active", "Terminating", "Running", "Succeeded", "Failed", "Unknown"} {
		pieces = append(pieces, "status: {phase: "+phase+"}")
	}
	base := map[string]any{
		"apiVersion": strings.TrimPrefix(kind.Group+"/v1", "/"), "kind": kind.Kind,
		"metadata": map[string]any{"name": "a", "generation": int64(2)},
		"spec": map[string]any{
			"replicas": int64(2), "type": "LoadBalancer", "clusterIP": "10.0.0.1",
			"updateStrategy": map[string]any{"type": "OnDelete"},
		},
	}
	var parsed []map[string]any
	for _, piece := range pieces {
		parsed = append(parsed, parse(t, "{apiVersion: v1, kind: A, "+piece+"}").Object)
	}
	for i, one := range parsed {
		for _, other := range parsed[:i+1] {
			fields := merge(merge(base, one), other)
			fields["apiVersion"], fields["kind"] = base["apiVersion"], base["kind"]
			out = append(out, &unstructured.Unstructured{Object: fields})
		}
	}
	bare := maps.Clone(base)
	bare["spec"] = map[string]any{}
	return append(out, &unstructured.Unstructured{Object: base}, &unstructured.Unstructured{Object: bare})
}

// conditionsOf returns statuses with each of the conditions that may matter for a kind.
func conditionsOf(kind schema.GroupKind) (out []string) {
	known := table[kind]
	types := slices.Concat(known.server, known.conditions, []string{"Ready", "Reconciling", "Stalled"})
	switch kind.Kind {
	case "HorizontalPodAutoscaler":
		types = append(types, "AbleToScale", "ScalingActive")
	case "Deployment":
		types = append(types, "Available", "Progressing", "ReplicaFailure")
	case "Job":
		types = append(types, "Complete", "Failed", "FailureTarget", "Suspended", "SuccessCriteriaMet")
	case "Pod":
		types = append(types, "PodScheduled")
	}
	slices.Sort(types)
	for _, t := range slices.Compact(types) {
		for _, rest := range []string{
			"status: 'True'", "status: 'True', observedGeneration: 1", "status: 'False'", "status: 'False', reason: FailedGetResourceMetric",
			"status: 'False', reason: InvalidSelector", "status: Unknown", "status: Unknown, lastTransitionTime: '" + never + "'",
		} {
			out = append(out, "status: {conditions: [{type: "+t+", "+rest+"}]}")
		}
	}
	return out
}

// merge returns two maps in one. Lists are joined but for conditions of the same type, and otherwise the second
// map counts.
func merge(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for k, v := range b {
		switch v := v.(type) {
		case map[string]any:
			if of, is := out[k].(map[string]any); is {
				out[k] = merge(of, v)
				continue
			}
		case []any:
			if of, is := out[k].([]any); is {
				others := slices.DeleteFunc(slices.Clone(of), func(a any) bool {
					return k == "conditions" && a.(map[string]any)["type"] == v[0].(map[string]any)["type"]
				})
				out[k] = slices.Concat(others, v)
				continue
			}
		}
		out[k] = v
	}
	return out
}
