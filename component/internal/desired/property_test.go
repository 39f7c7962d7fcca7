package desired_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// everything is a set that uses what this package knows.
const everything = `
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {op.test/reconcile-policy: once}}, stringData: {a: b}}
---
{apiVersion: example.org/v1, kind: Foo, metadata: {name: b, annotations: {op.test/depends-on: Secret/a, op.test/apply-order: "3", note: stays}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s, annotations: {op.test/status-hint: has-ready-condition}}
spec:
  template: {metadata: {creationTimestamp: null}, spec: {containers: [{resources: {limits: {cpu: 1.50, memory: "0x"}}}]}}
  volumeClaimTemplates: [{spec: {resources: {requests: {storage: 1024Gi}}}}]
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: hook}}]}
---
`

func seeds() []string {
	valid := strings.Replace(everything[1:], "0x", "1e3", 1)
	return []string{
		valid + webhook[1:] + server[1:] + account[1:] + foos[1:] + foo[1:] + strings.TrimSuffix(metrics[1:], "---\n"),
		strings.TrimSuffix(everything[1:], "---\n"),
		strings.TrimSuffix(foos[1:], "---\n"),
		"{metadata: {annotations: {op.test/depends-on: ','}}}",
	}
}

// FuzzNormalize looks for sets, valid or not, that Normalize does not survive, or whose result it would
// change again: what was applied must not differ from what is desired in the next pass.
func FuzzNormalize(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 {
			t.Skip("the parser of YAML expands aliases")
		}
		var in []client.Object
		for doc := range strings.SplitSeq(text, "\n---\n") {
			u := &unstructured.Unstructured{}
			if yaml.Unmarshal([]byte(doc), &u.Object) == nil {
				in = append(in, u)
			}
		}
		checkStable(t, in)
	})
}

// checkStable normalizes a set, then its result.
func checkStable(t *testing.T, in []client.Object) (normal bool) {
	t.Helper()
	first, err := desired.Normalize(in, options())
	if err != nil {
		return false
	}
	var manifests []client.Object
	for _, o := range first {
		manifests = append(manifests, o.Manifest)
	}
	second, err := desired.Normalize(manifests, options())
	if err != nil {
		t.Fatalf("the result is refused: %v", err)
	}
	if len(first) != len(second) {
		t.Fatalf("%d objects became %d", len(first), len(second))
	}
	is := map[string]desired.Object{}
	for _, o := range first {
		is[o.Item.Key()] = o
	}
	for _, o := range second {
		if diff := cmp.Diff(rendered(t, is[o.Item.Key()]), rendered(t, o)); diff != "" {
			t.Errorf("%s changes again (-first +second):\n%s", o.Item.Key(), diff)
		}
	}
	return true
}

// TestOrderDoesNotMatter proves that renderers may return objects in any order, as those do that iterate
// over maps.
func TestOrderDoesNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i, seed := range seeds() {
		in := objects(t, seed)
		want, wantErr := desired.Normalize(in, options())
		if i == 0 && wantErr != nil {
			t.Fatal(wantErr)
		}
		for range 50 {
			r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			got, err := desired.Normalize(in, options())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("the result depends on the order (-want +got):\n%s", diff)
			}
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("the error depends on the order:\n%v\n%v", wantErr, err)
			}
		}
	}
}

// TestRandomContent puts random values at random places of a valid set. Nothing may panic, and what is
// accepted must be stable.
func TestRandomContent(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	accepted, refused := 0, 0
	valid := objects(t, seeds()[0])
	for range 500 {
		var in []client.Object
		for _, o := range valid {
			in = append(in, o.DeepCopyObject().(client.Object))
		}
		for range 1 + r.IntN(2) {
			u := in[r.IntN(len(in))].(*unstructured.Unstructured)
			disturb(r, u.Object)
		}
		if checkStable(t, in) {
			accepted++
		} else {
			refused++
		}
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("%d sets were accepted and %d refused: these are too few to prove anything", accepted, refused)
	}
}

// disturb replaces one value somewhere in fields, or removes it.
func disturb(r *rand.Rand, fields map[string]any) {
	key, n := "", r.IntN(max(1, len(fields)))
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if n--; n < 0 {
			key = k
			break
		}
	}
	if r.IntN(4) > 0 {
		switch v := fields[key].(type) {
		case map[string]any:
			disturb(r, v)
			return
		case []any:
			if len(v) > 0 {
				if m, ok := v[r.IntN(len(v))].(map[string]any); ok {
					disturb(r, m)
					return
				}
			}
		}
	}
	values := []any{
		nil, "", "x", "-1", "a/b", int64(-5), 1.5, true,
		[]any{},
		[]any{nil, "x", map[string]any{}},
		map[string]any{},
		map[string]any{"name": "hook", "namespace": "shop"},
		map[string]any{"a": nil},
		"Foo", "hook", "shop", "v1", "Namespace", "default",
	}
	if n := r.IntN(len(values) + 1); n < len(values) {
		fields[key] = values[n]
		return
	}
	delete(fields, key)
}

func BenchmarkNormalize(b *testing.B) {
	var in []client.Object
	for i := range 5_000 {
		for _, o := range objects(b, strings.ReplaceAll(strings.TrimSuffix(server[1:], "---\n"), "name: hook", fmt.Sprintf("name: hook%d", i))) {
			if len(in) < 5_000 {
				in = append(in, o)
			}
		}
	}
	o := options()
	o.Scope = func(schema.GroupKind, string) (namespaced, known bool) { return true, true }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := desired.Normalize(in, o); err != nil {
			b.Fatal(err)
		}
	}
}
