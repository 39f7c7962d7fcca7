package change

import "testing"

func TestHash(t *testing.T) {
	a := List{{Path: "a", Want: 1, Have: 2}, {Path: "b", Want: "x", Have: nil}}
	b := List{a[1], a[0]}
	if a.Hash() != b.Hash() {
		t.Error("the order changes the hash")
	}
	if other := (List{a[0], {Path: "b", Want: "x", Have: "y"}}); a.Hash() != other.Hash() {
		t.Error("what varies changes the hash")
	}
	seen := map[string]bool{}
	for _, c := range []List{nil, a, a[:1], {{Path: "a", Want: 2, Have: 2}}, {{Path: "a", Want: 1, Have: 2, Effect: Recreate}}, {{Path: "a", Want: "1", Have: 2}}} {
		seen[c.Hash()] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d hashes of 6 changes", len(seen))
	}
}
