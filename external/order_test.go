package external_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// TestOrder: what happens in one pass of a new process, and in which order.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(*operatorTest)
		want []string
	}{
		"E0-60 E0-72 retrieve, connect, no deletion, sync": {
			func(w *operatorTest) { w.resize(2) },
			[]string{"retrieve", "connect", "observe", "decide to update", "update", "observe", "write status", "return"},
		},
		"E0-60 E0-64 E0-72 retrieve, connect, deletion, delete, status": {
			func(w *operatorTest) { w.cloud.with(func() { w.cloud.slow["DELETE"] = true }); w.delete() },
			[]string{"retrieve to delete", "connect", "observe", "decide to delete", "delete", "write status", "return"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *operatorTest
			w = newOperatorTest(t, named{}, func(o *options) {
				connect := o.Connect
				o.Connect = func(ctx context.Context) (*cloudClient, error) {
					w.trace.Record(trace.Record{Event: trace.Call{Op: "connect"}})
					return connect(ctx)
				}
			})
			w.create()
			w.ready()
			w.stop()
			test.do(w)
			w.trace = &recorder{}
			w.options.Loop.Trace = w.trace
			w.start()
			w.until(func() bool { return len(w.trace.ends("a")) > 0 })
			if got := w.trace.steps(); !isSubsequence(test.want, got) {
				t.Errorf("steps of a pass: %v, want among them and in this order %v", got, test.want)
			}
		})
	}
}

// steps are those of the first pass that was traced.
func (r *recorder) steps() []string {
	var out []string
	for _, e := range events[trace.Event](r, "") {
		switch e := e.(type) {
		case trace.Start:
			step := "retrieve"
			if e.Deleting {
				step += " to delete"
			}
			out = append(out, step)
		case trace.Decision:
			out = append(out, "decide to "+e.Action)
		case trace.Call:
			out = append(out, e.Op)
		case trace.Write:
			out = append(out, strings.TrimSpace("write "+e.Subresource))
		case trace.End:
			return append(out, "return")
		}
	}
	return out
}

func isSubsequence(want, got []string) bool {
	for _, g := range got {
		if len(want) > 0 && want[0] == g {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// remarked are things with a note that nothing but the Secret shows.
type remarked struct{ hosted }

func (n remarked) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	o, err := n.hosted.Observe(ctx, r)
	o.Details = map[string][]byte{"note": []byte(o.Have.Detail)}
	return o, err
}

// TestWritesAreSeparate: the object, its status and its Secret are written by requests of their own, each only if it changed.
func TestWritesAreSeparate(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, remarked{}, drifting(50*time.Millisecond))
	w.create(connected)
	w.ready()
	t.Run("E0-69 object, status and Secret are separate, and written only when changed", func(t *testing.T) {
		all := func() []string {
			writes := w.writes("a")
			for _, r := range w.requests.Select(testenv.Request.IsWrite) {
				if r.Resource == "secrets" && r.Namespace == w.namespace {
					writes = append(writes, r.Verb+" secret")
				}
			}
			slices.Sort(writes)
			return writes
		}
		if diff := cmp.Diff([]string{"apply status", "create secret", "patch", "patch secret"}, all()); diff != "" {
			t.Errorf("to become Ready (-want +got):\n%s", diff)
		}
		for _, step := range []struct {
			write string
			do    func()
		}{
			{"", func() {}},
			{"patch secret", func() { w.cloud.change("a", func(i *item) { i.Detail = "moved" }) }},
			{"apply status", func() { w.cloud.change("a", func(i *item) { i.State = "IDLE" }) }},
			{"patch", func() {
				w.patch(`{"metadata":{"annotations":{"` + api.AnnotationExternal + `":null}}}`)
			}},
			{"", func() {}},
		} {
			before := all()
			step.do()
			w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+20)
			want := before
			if step.write != "" {
				w.until(func() bool { return len(all()) > len(before) })
				want = append(slices.Clone(before), step.write)
				slices.Sort(want)
			}
			if diff := cmp.Diff(want, all()); diff != "" {
				t.Errorf("writes when only what %q writes has changed (-want +got):\n%s", step.write, diff)
			}
		}
	})
}

// TestIdentities: a life with each kind of id.
func TestIdentities(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		driver driver[*thing.Thing]
		change func(*options)
		ids    func(*thing.Thing) []string // the first, and the one after a loss
	}{
		"chosen by the user":   {named{}, func(*options) {}, func(*thing.Thing) []string { return []string{"a", "a"} }},
		"derived from the UID": {things{}, func(*options) {}, func(o *thing.Thing) []string { return []string{name(o), name(o)} }},
		"assigned by the API":  {numbered{}, assigns(true), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, test.driver, test.change, drifting(50*time.Millisecond))
			w.create()
			first := w.ready()
			id := first.Status.External.ID
			if test.ids != nil && id != test.ids(first)[0] || w.cloud.get(id) == nil {
				t.Errorf("id %q, things %v", id, w.cloud.live())
			}
			w.resize(2)
			w.ready()
			w.cloud.change(id, func(i *item) { i.Size = 9 })
			if !w.until(func() bool { return w.cloud.get(id).Size == 2 }) {
				t.Errorf("drift stays: %+v", w.cloud.get(id))
			}
			w.stop()
			w.start()
			w.cloud.with(func() { delete(w.cloud.items, id) })
			var again *thing.Thing
			if !w.until(func() bool { // the status may be what it was
				again = w.get("a")
				return is(again, "Ready", "True") && w.cloud.get(again.Status.External.ID) != nil && w.cloud.count(http.MethodPost) == 2
			}) {
				t.Errorf("not created again: %+v", again.Status)
			}
			if test.ids != nil && again.Status.External.ID != test.ids(again)[1] {
				t.Errorf("id %q after a loss", again.Status.External.ID)
			}
			w.delete()
			w.gone()
			if live := w.cloud.live(); len(live) > 0 {
				t.Errorf("left behind: %v", live)
			}
		})
	}
}
