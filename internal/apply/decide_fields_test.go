package apply

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

func TestFieldSets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := randomSet(random, 3), randomSet(random, 3)
		both := union(a, b)
		switch {
		case exceeds(a, both) || exceeds(b, both):
			t.Fatalf("the union %v lacks something of %v or %v", both, a, b)
		case exceeds(minus(a, b), a):
			t.Fatalf("%v minus %v is %v, which has more", a, b, minus(a, b))
		case meets(minus(a, b), b):
			t.Fatalf("%v minus %v is %v, which meets it", a, b, minus(a, b))
		case exceeds(a, b) == (len(minus(a, b)) == 0):
			t.Fatalf("%v exceeds %v: %v, but what is left is %v", a, b, exceeds(a, b), minus(a, b))
		case exceeds(a, union(minus(a, b), b)):
			t.Fatalf("%v is not what is left, and %v", a, b)
		}
	}
}

// randomSet returns a set of fields that is at most so deep.
func randomSet(random *rand.Rand, depth int) fields {
	set := fields{}
	for _, element := range []string{"f:a", "f:b", "f:c"} {
		if depth > 0 && random.IntN(2) == 0 {
			set[element] = randomSet(random, depth-1)
		}
	}
	return set
}

func TestWithin(t *testing.T) {
	set := fields{
		"f:spec": fields{"f:replicas": fields{}, "f:ports": fields{
			`k:{"port":80,"protocol":"TCP"}`: fields{".": fields{}, "f:port": fields{}},
			`k:{"port":81,"protocol":"TCP"}`: fields{".": fields{}},
		}},
	}
	got := within(set, []fingerprint.Path{{"f:spec", "f:ports", `k:{"port":80}`}, {"f:spec", "f:absent"}})
	want := fields{"f:spec": fields{"f:ports": fields{
		`k:{"port":80,"protocol":"TCP"}`: fields{".": fields{}, "f:port": fields{}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	live := map[string]any{"spec": map[string]any{
		"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%"}, "theirs": "x"},
		"ours":     "x",
	}}
	own := &owners{entries: []entry{{"manager": "them", "fieldsV1": fields{"f:spec": fields{"f:strategy": fields{"f:theirs": fields{}}}}}}}
	manifest := map[string]any{"spec": map[string]any{"strategy": map[string]any{"type": "Recreate"}, "ours": "y"}}
	got := defaults(manifest, live, own, [][]string{
		{"spec", "strategy", "theirs"},
		{"spec", "ours"},
		{"spec", "absent"},
		{"status", "phase"},
		{"spec", "strategy", "type", "x"},
		{"spec", "strategy", "rollingUpdate"},
	})
	want := fields{"f:spec": fields{"f:strategy": fields{"f:rollingUpdate": fields{".": fields{}, "f:maxSurge": fields{}}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTools(t *testing.T) {
	for manager, want := range map[string]bool{
		"kubectl": true, "kubectl-edit": true, "kubectl-client-side-apply": true, "helm": true,
		"kubectl-rollout": false, "helm-controller": false, "kubectlx": false, "other": false,
	} {
		if tool(manager) != want {
			t.Errorf("%s: %v, want %v", manager, !want, want)
		}
	}
}
