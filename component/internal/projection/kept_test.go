package projection

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// TestKept: whatever an object is like, what is stored of it is all of it.
func TestKept(t *testing.T) {
	key := keyFor("shop", "a")
	of := func(owner string) string { return desired.OwnerAnnotation(owner, "0e1f", key.itemKey()) }
	pick := func(rng *rand.Rand, from ...string) string { return from[rng.IntN(len(from))] }
	varied := map[string]bool{}
	for seed := range uint64(5_000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		o := Object{
			UID: types.UID(pick(rng, "", "a-1", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3F2504E0-4F89-11D3-9A0C-0305E82C3301",
				"00000000-0000-0000-0000-000000000000", "3f2504e04f8911d39a0c0305e82c3301")),
			Version: pick(rng, "", "1", "007", "0", "18446744073709551615", "99999999999999999999", "x1"), Generation: int64(rng.IntN(3)),
			Owner:   pick(rng, "", of("c/shop/a"), of("c/shop/b"), "c/shop/a@u /ConfigMap/other/x", "somebody", "a b c", " ", of("")),
			Digest:  pick(rng, "", "once", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "mzxw6ytboi2dgnrvgy3tqojqge", "mzxw6ytboi2dgnrvgy3tqojqge@7", "MZXW6YTBOI2DGNRVGY3TQOJQGE"),
			Leaving: rng.IntN(2) == 0, Reset: rng.IntN(2) == 0, PlainStatus: rng.IntN(2) == 0, Replicas: rng.IntN(2) == 0, Released: rng.IntN(2) == 0, Ended: rng.IntN(2) == 0, Translated: rng.IntN(2) == 0,
			Print:   fingerprint.Print{Owned: fingerprint.Hash{byte(rng.IntN(2))}, Values: fingerprint.Hash{7: byte(rng.IntN(2))}},
			Content: fingerprint.Hash{byte(rng.IntN(2))},
			Health:  health.Result{Status: health.Status(pick(rng, string(health.Current), string(health.Failed))), Why: pick(rng, "", "has failed")},
		}
		if rng.IntN(2) == 0 {
			o.Finalizers = []string{"a/b"}
		}
		if diff := cmp.Diff(&o, keep(o, key).object(key)); diff != "" {
			t.Fatalf("seed %d: (-object +kept):\n%s", seed, diff)
		}
		for field, value := range reflect.ValueOf(o).Fields() {
			varied[field.Name] = varied[field.Name] || !value.IsZero()
		}
	}
	for field, is := range varied {
		if !is {
			t.Errorf("the test gives %s no value", field)
		}
	}
}
