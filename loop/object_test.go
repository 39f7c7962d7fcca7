package loop

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

// TestMetadataPatch: the patch that is computed from metadata alone says what the one says that
// controller-runtime computes from whole objects.
func TestMetadataPatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	texts := func() map[string]string {
		m := map[string]string{}
		for _, key := range []string{"a", "b", "example.org/c"} {
			if rng.IntN(2) > 0 {
				m[key] = []string{"", "x", "y\x7f"}[rng.IntN(3)]
			}
		}
		return m
	}
	object := func() *probe.Probe {
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "7", Labels: texts(), Annotations: texts()}}
		for _, name := range []string{"f", "g"} {
			if rng.IntN(2) > 0 {
				p.Finalizers = append(p.Finalizers, name)
			}
			if rng.IntN(2) > 0 {
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Kind: "K", Name: name, Controller: new(rng.IntN(2) > 0)})
			}
		}
		return p
	}
	for range 2000 {
		base, want := object(), object()
		got, err := metadataPatch(base, want)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}).Data(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(patched(t, base, whole), patched(t, base, got)); diff != "" {
			t.Fatalf("%s says other than %s (-want +got)\n%s", got, whole, diff)
		}
		if version := decoded(t, got)["metadata"].(map[string]any)["resourceVersion"]; version != "7" {
			t.Fatalf("%s is not locked", got)
		}
	}
}

func decoded(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// patched returns base after a merge patch, without empty fields.
func patched(t *testing.T, base client.Object, patch []byte) map[string]any {
	t.Helper()
	data, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return merged(decoded(t, data), decoded(t, patch))
}

func merged(base, patch map[string]any) map[string]any {
	for key, value := range patch {
		before, _ := base[key].(map[string]any)
		part, ok := value.(map[string]any)
		switch {
		case !ok && value == nil:
			delete(base, key)
		case !ok:
			base[key] = value
		default:
			if before == nil {
				before = map[string]any{}
			}
			if base[key] = merged(before, part); len(base[key].(map[string]any)) == 0 {
				delete(base, key)
			}
		}
	}
	return base
}
