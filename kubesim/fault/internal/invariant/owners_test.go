package invariant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
)

// TestWrongOwner proves that an owner which fits nothing is told with what would fit, and that
// whatever an invariant can make use of is let be.
func TestWrongOwner(t *testing.T) {
	const site = "sites.demo.dev a" // of the cluster
	owned := func(owner func(s *story) string) func(*story) {
		return func(s *story) {
			s.before["user creates"] = put("user", site, "{metadata: {generation: 1}}")
			s.instead["make"] = func(s *story) {
				q := s.queue("q-1", 1)
				q.Owner = owner(s)
				s.external("operator", q)
			}
		}
	}
	is := func(owner string) func(*story) string { return func(*story) string { return owner } }
	// What follows "external resource queue q-1 has the owner ...".
	const wrong = ", which fits no object that there ever was; Resources has to return the UID or namespace/name of the object that it was made for"
	const right = `, such as "0000001f-0000-4000-8000-000000000002" or "default/shop" for databases.demo.dev default/shop`
	const others = ", and an empty Owner for what is not the operator's"
	tests := map[string]struct {
		why  string
		life func(*story)
		want string
	}{
		"uid":           {"it names the incarnation", owned(func(s *story) string { return s.uidOf(shop) }), ""},
		"full name":     {"of whatever kind", owned(is("default/shop")), ""},
		"cluster":       {"an object of the cluster has no namespace", owned(is("a")), ""},
		"nobody":        {"what users made has no owner", owned(is("")), ""},
		"name alone":    {"the object is in a namespace", owned(is("shop")), `external resource queue q-1 has the owner "shop"` + wrong + right + others},
		"with kind":     {"a key is neither", owned(is("databases/default/shop")), `external resource queue q-1 has the owner "databases/default/shop"` + wrong + right + others},
		"another world": {"a UID that no object has", owned(is("4d5a1f0c-1111-4222-8333-444455556666")), `external resource queue q-1 has the owner "4d5a1f0c-1111-4222-8333-444455556666"` + wrong + right + others},
		"tombstone": {
			"the vendor goes on showing what was made for an object that is long gone",
			func(s *story) {
				uid := ""
				s.before["user deletes"] = func(s *story) { uid = s.uidOf(shop) }
				s.after["deleted"] = func(s *story) { s.external("user", history.Resource{Kind: "tombstone", ID: "q-1", Owner: uid}) }
			}, "",
		},
		"a user's": {
			"no reconcile made it, so there is nothing to say of what would fit",
			add("created", func(s *story) {
				s.external("user", s.queue("q-1", 1), history.Resource{Kind: "queue", ID: "q-9", Owner: "them"})
			}),
			`external resource queue q-9 has the owner "them"` + wrong + others,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			tt.life(s)
			if diff := cmp.Diff(tt.want, invariant.WrongOwner(s.live())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
