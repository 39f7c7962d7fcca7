package invariant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// story writes the record of a run by hand.
type story struct {
	t       testing.TB
	run     *history.Run
	now     time.Time
	rev     int64
	pass    int
	objects map[string]*unstructured.Unstructured // by "resource.group namespace/name"
	births  int
	things  []history.Resource
	// instead replaces what happens at a named moment of the life cycle, before and after add to it.
	instead, before, after map[string]func(*story)
}

func newStory(t testing.TB) *story {
	t.Helper()
	s := &story{
		t: t, now: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), pass: history.Nobody, objects: map[string]*unstructured.Unstructured{},
		run:     &history.Run{Scenario: "life", Processes: []history.Process{{}}},
		instead: map[string]func(*story){}, before: map[string]func(*story){}, after: map[string]func(*story){},
	}
	s.external("setup")
	return s
}

// at does what happens at a moment.
func (s *story) at(moment string, usual func()) {
	if f := s.before[moment]; f != nil {
		f(s)
	}
	if f := s.instead[moment]; f != nil {
		f(s)
	} else {
		usual()
	}
	if f := s.after[moment]; f != nil {
		f(s)
	}
}

func (s *story) tick(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) step(name string) {
	s.run.Steps = append(s.run.Steps, history.Step{Name: name, Call: len(s.run.Calls), Rev: s.rev, At: s.now})
}

// rest ends a step.
func (s *story) rest() {
	s.tick(time.Minute)
	var all []state.Object
	for key, u := range s.objects {
		resource, _, _ := strings.Cut(key, " ")
		resource, group, _ := strings.Cut(resource, ".")
		all = append(all, state.Object{Group: group, Resource: resource, Object: u})
	}
	h := &s.run.Steps[len(s.run.Steps)-1]
	h.State, h.Settled, h.SettledCall, h.SettledRev = state.Of(all, s.things, state.Options{}), s.now, len(s.run.Calls), s.rev
}

// begin and end are of a reconcile.
func (s *story) begin(object string) {
	s.pass = len(s.run.Passes)
	s.run.Passes = append(s.run.Passes, history.Pass{
		Index: s.pass, Process: len(s.run.Processes) - 1, Controller: "database", Object: object, Begin: s.now, First: len(s.run.Calls),
	})
}

func (s *story) end(err string) {
	p := &s.run.Passes[s.pass]
	p.Last, p.Err, p.Ended = len(s.run.Calls), err, true
	s.pass = history.Nobody
}

// call records one and returns it to be filled.
func (s *story) call(c history.Call) *history.Call {
	c.Index, c.At, c.Process, c.Pass = len(s.run.Calls), s.now, len(s.run.Processes)-1, s.pass
	s.run.Calls = append(s.run.Calls, c)
	return &s.run.Calls[c.Index]
}

// fault marks the next call's moment.
func (s *story) fault(kind string) {
	s.run.Faults = append(s.run.Faults, history.Fault{Kind: kind, Call: len(s.run.Calls), Time: s.now, Step: len(s.run.Steps) - 1})
}

// uidOf returns the UID of the living object.
func (s *story) uidOf(key string) string { return string(s.objects[key].GetUID()) }

// put writes an object; "" deletes it. The operator does so by a call.
func (s *story) put(by, key, manifest string) {
	s.t.Helper()
	before := s.objects[key]
	var after *unstructured.Unstructured
	resource, full, _ := strings.Cut(key, " ")
	resource, group, _ := strings.Cut(resource, ".")
	namespace, name, ok := strings.Cut(full, "/")
	if !ok { // an object of the cluster
		namespace, name = "", full
	}
	if manifest != "" {
		after = &unstructured.Unstructured{}
		b, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Any, " + manifest[1:]))
		if err != nil {
			s.t.Fatal(err, manifest)
		}
		if err := after.UnmarshalJSON(b); err != nil {
			s.t.Fatal(err)
		}
		after.SetNamespace(namespace)
		after.SetName(name)
		if before == nil {
			s.births++
			after.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", len(key), s.births)))
		} else {
			after.SetUID(before.GetUID())
		}
	}
	s.rev++
	index, step := history.Nobody, len(s.run.Steps)-1
	if by == "operator" {
		c := s.call(history.Call{Side: history.Kubernetes, Verb: "update", Group: group, Resource: resource, Namespace: namespace, Name: name, Write: true, Changed: true, Rev: s.rev, Last: s.rev})
		index = c.Index
		switch {
		case before == nil:
			c.Verb = "create"
		case after == nil && len(before.GetFinalizers()) == 0:
			c.Verb = "delete"
		}
	}
	s.run.Changes = append(s.run.Changes, history.Change{
		Rev: s.rev, At: s.now, Group: group, Resource: resource, Namespace: namespace, Name: name,
		Before: before, After: after, Call: index, By: by, Step: max(step, 0),
	})
	s.objects[key] = after
	if after == nil {
		delete(s.objects, key)
	}
}

// external says what exists at the external API from now on.
func (s *story) external(by string, things ...history.Resource) {
	index := history.Nobody
	if by == "operator" {
		index = s.call(history.Call{Side: history.External, Verb: "write", What: "write outside", Write: true, Changed: true}).Index
	}
	slices.SortFunc(things, func(a, b history.Resource) int { return strings.Compare(a.Kind+a.ID, b.Kind+b.ID) })
	s.things = things
	s.run.External = append(s.run.External, history.View{At: s.now, Call: index, Step: max(len(s.run.Steps)-1, 0), Resources: things})
}

func (s *story) silence() {
	w := history.Silence{Call: len(s.run.Calls), From: s.now, Restarted: history.Nobody, ReadsAllowed: -1}
	s.run.Silence = &w
	s.at("silence", func() {})
	s.tick(15 * time.Minute)
	w.To, w.LastCall = s.now, len(s.run.Calls)
}

const (
	shop = "databases.demo.dev default/shop"
	cfg  = "configmaps default/shop-config"
)

// database writes a database: its generation, size, finalizer and status.
func database(generation int, finalizers, status string) string {
	return fmt.Sprintf("{metadata: {generation: %d, finalizers: [%s]}, spec: {size: %d}, status: {%s}}", generation, finalizers, generation, status)
}

func deleting(finalizers string) string {
	return strings.Replace(database(2, finalizers, readyAt(2)), "metadata: {", `metadata: {deletionTimestamp: "2000-01-01T00:00:09Z", `, 1)
}

const mark = "demo.dev/finalizer"

// ready is a status that says so.
func readyAt(generation int) string {
	return fmt.Sprintf(`observedGeneration: %d, conditions: [{type: Ready, status: "True", reason: Available, lastTransitionTime: t1, observedGeneration: %d}]`, generation, generation)
}

func notReady(generation int) string {
	return fmt.Sprintf(`observedGeneration: %d, conditions: [{type: Ready, status: "False", reason: Failing, lastTransitionTime: t2, observedGeneration: %d}]`, generation, generation)
}

// reconciling adds to a status that work goes on.
func reconciling(status string) string {
	return strings.TrimSuffix(status, "]") + `, {type: Reconciling, status: "True", reason: Updating, lastTransitionTime: t1}]`
}

// queue is what the operator makes for a database.
func (s *story) queue(id string, size int) history.Resource {
	return history.Resource{Kind: "queue", ID: id, Owner: s.uidOf(shop), State: fmt.Sprint("size ", size), Ready: true}
}

// live plays the life of a database under a good operator.
func (s *story) live() *history.Run {
	s.step("create")
	s.at("user creates", func() { s.put("user", shop, database(1, "", "")) })
	s.begin("default/shop")
	s.at("finalizer", func() { s.put("operator", shop, database(1, mark, "")) })
	s.at("make", func() { s.external("operator", s.queue("q-1", 1)) })
	s.at("config", func() { s.put("operator", cfg, "{metadata: {labels: {database: shop}}, data: {a: b}}") })
	s.at("ready", func() { s.put("operator", shop, database(1, mark, readyAt(1))) })
	s.end("")
	s.at("created", func() {})
	s.rest()
	s.step("resize")
	s.at("user resizes", func() { s.put("user", shop, database(2, mark, readyAt(1))) })
	s.begin("default/shop")
	s.at("update", func() { s.external("operator", s.queue("q-1", 2)) })
	s.at("ready again", func() { s.put("operator", shop, database(2, mark, readyAt(2))) })
	s.end("")
	s.at("resized", func() {})
	s.rest()
	s.step("delete")
	s.at("user deletes", func() { s.put("user", shop, deleting(mark)) })
	s.begin("default/shop")
	s.at("remove", func() { s.external("operator") })
	s.at("remove config", func() { s.put("operator", cfg, "") })
	s.at("let go", func() { s.put("operator", shop, "") })
	s.end("")
	s.at("deleted", func() {})
	s.rest()
	s.silence()
	return s.run
}
