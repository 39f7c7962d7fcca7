package invariant_test

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// hold notes what there is while code does not return.
func (s *story) hold() {
	var all []state.Object
	for key, u := range s.objects {
		resource, _, _ := strings.Cut(key, " ")
		resource, group, _ := strings.Cut(resource, ".")
		all = append(all, state.Object{Group: group, Resource: resource, Object: u})
	}
	s.run.Held = &history.Held{
		Call: len(s.run.Calls), Rev: s.rev, Step: len(s.run.Steps) - 1, State: state.Of(all, s.things, state.Options{}),
	}
}

// While a call of the driver does not return, what is not as it should be says so (I20).
func TestUnreported(t *testing.T) {
	silent := "I20: default/shop is not as it should be while a call of the driver does not return"
	judge(t, map[string]tale{
		"blocked":         {why: "nobody has looked at the new spec", run: first("update", (*story).hold), want: []string{silent}},
		"told":            {why: "it says what it waits for", run: first("update", func(s *story) { put("operator", shop, database(2, mark, notReady(2)))(s); s.hold() })},
		"told of before":  {why: "that is about another spec", run: first("update", func(s *story) { put("operator", shop, database(2, mark, notReady(1)))(s); s.hold() }), want: []string{silent}},
		"as it should be": {why: "nothing waits for it", run: add("resized", (*story).hold)},
		"lost outside": {
			why: "the object is as it should be, its resource is not", want: []string{"I20: the external resources are not in the expected state while a call of the driver does not return, and no object says so"},
			run: add("resized", func(s *story) {
				s.external("user")
				s.hold()
				s.external("operator", s.queue("q-1", 2))
			}),
		},
		"child edited": {
			why: "the object is as it should be, what it consists of is not", want: []string{"I20: configmaps default/shop-config is not in the expected state while a call of the driver does not return, and no object says so"},
			run: add("resized", func(s *story) {
				was := s.objects[cfg].DeepCopy()
				put("user", cfg, `{data: {size: "7"}}`)(s)
				s.hold()
				s.objects[cfg] = was
			}),
		},
	})
}
