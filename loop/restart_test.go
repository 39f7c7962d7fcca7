package loop_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// many is how many objects a restart meets.
const many = 50

// converge runs a controller over many objects named p0 and so on, until the status of all is written, and stops it.
func converge(t *testing.T, w *controllerTest, o options, do func(*run) loop.Outcome) {
	t.Helper()
	c := newCounter(do)
	w.start(c, o)
	for n := range many {
		w.create(fmt.Sprintf("p%d", n))
	}
	for n := range many {
		w.await(fmt.Sprintf("p%d", n), "to be Ready", ready)
	}
	w.stop()
}

// TestRestart proves what is reconciled when a process starts.
func TestRestart(t *testing.T) {
	t.Parallel()
	once := options{Revision: "1", MaxInterval: -1}
	t.Run("002-34 what has not changed is not", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, once, nil)
		c := newCounter[*probe.Probe](nil)
		w.requests.Reset()
		w.start(c, once)
		c.silent(t, 10*time.Second)
		if writes := w.probeWrites(); len(writes) != 0 {
			t.Errorf("written: %v", writes)
		}
		w.patch("p6", `{"spec":{"size":6}}`)
		c.await(t, 1) // the others are still looked after
		w.await("p6", "its new spec", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		w.stop()

		w.patch("p7", `{"spec":{"size":7}}`)
		down := newCounter[*probe.Probe](nil)
		w.start(down, once)
		down.await(t, 1)
		w.await("p7", "its new spec", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		down.silent(t, time.Second)
		if down.counts["p7"] != 1 || down.total() != 1 {
			t.Errorf("calls after one spec changed while the process was down: %v, want one for p7", down.counts)
		}
		w.stop()

		next := newCounter[*probe.Probe](nil)
		w.start(next, options{Revision: "2", MaxInterval: -1})
		next.await(t, many)
		if len(next.counts) != many {
			t.Errorf("a new revision visits %d objects, want all %d", len(next.counts), many)
		}
	})
	t.Run("002-34 an appointment is kept", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, once, func(r *run) loop.Outcome {
			if r.Obj.Name == "p3" {
				return loop.After(3 * time.Second)
			}
			return loop.Done()
		})
		c := newCounter[*probe.Probe](nil)
		w.start(c, once)
		started := time.Now()
		c.await(t, 1)
		if d := time.Since(started); c.counts["p3"] != 1 || d > 10*time.Second {
			t.Errorf("%s after the restart the calls are %v, want one for p3, which asked for a pass within 3 s", d, c.counts)
		}
		c.silent(t, time.Second)
	})
	t.Run("every object is visited within the interval", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		often := options{Revision: "1", MaxInterval: 4 * time.Second}
		converge(t, w, options{Revision: "1", MaxInterval: time.Hour}, nil)
		c := newCounter[*probe.Probe](nil)
		w.start(c, often)
		c.await(t, many)
	})
	t.Run("without a revision all are", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, options{}, nil)
		c := newCounter[*probe.Probe](nil)
		w.start(c, options{})
		c.await(t, many)
		if last := w.get("p0").Status.LastPass; last != nil {
			t.Errorf("the status has lastPass %+v, which is for controllers with a revision", last)
		}
	})
}

// TestRestartVisits: what a process that starts may not pass over.
func TestRestartVisits(t *testing.T) {
	t.Parallel()
	o := options{Revision: "1", MaxInterval: -1, Retry: linear(-1), WakeOn: []string{"example.org/wake"}}
	for name, change := range map[string]func(*controllerTest){
		"a failure": func(w *controllerTest) { w.resize(13) },
		"an annotation that causes passes": func(w *controllerTest) {
			w.stop()
			w.patch("a", `{"metadata":{"annotations":{"example.org/wake":"now"}}}`)
		},
		"a status of somebody else": func(w *controllerTest) {
			w.stop()
			last := w.get("a").Status.LastPass
			// Even the right hash does not count if another client wrote it.
			patchAs(w.t, w, probeNamed("a"), true, `{"status":{"lastPass":null}}`)
			patchAs(w.t, w, probeNamed("a"), true, fmt.Sprintf(`{"status":{"lastPass":{"inputs":%q}}}`, last.Inputs))
		},
		"a deletion": func(w *controllerTest) {
			w.stop()
			w.delete()
		},
		"a lost finalizer": func(w *controllerTest) {
			w.stop()
			w.patch("a", `{"metadata":{"finalizers":null}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do := func(r *run) loop.Outcome {
				if r.Obj.Spec.Size == 13 {
					return loop.Fail(errBroken)
				}
				return loop.Done()
			}
			w := newNamespaceTest(t)
			w.start(cleaner{author: newAuthor(nil)}, options{Revision: "1"})
			w.create("a")
			w.await("a", "to be Ready", ready)
			w.stop()
			w.start(tidy{newCounter(do)}, o)
			change(w)
			if name == "a failure" {
				w.await("a", "to fail", func(p *probe.Probe) bool { return p.Status.State == "Failed" })
			}
			w.stop()
			c := tidy{newCounter(do)}
			w.start(c, o)
			c.await(t, 1)
		})
	}
	t.Run("what a source says", func(t *testing.T) {
		t.Parallel()
		refers := options{Revision: "1", MaxInterval: -1, Sources: []trigger.Source[*probe.Probe]{trigger.Reference[*probe.Probe]{
			To: &corev1.ConfigMap{},
			Names: func(p *probe.Probe) []types.NamespacedName {
				if p.Spec.Needs == "" {
					return nil
				}
				return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
			},
		}}}
		w := newNamespaceTest(t)
		w.start(newCounter[*probe.Probe](nil), refers)
		w.create("a", func(p *probe.Probe) { p.Spec.Needs = "config" })
		w.create("b")
		for _, name := range []string{"a", "b"} {
			w.await(name, "to be Ready", ready)
		}
		w.stop()
		createAs(t, w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}})
		c := newCounter[*probe.Probe](nil)
		w.start(c, refers)
		c.await(t, 1)
		c.silent(t, time.Second)
		if c.counts["a"] == 0 || c.counts["b"] != 0 {
			t.Errorf("calls: %v, want one for a, whose ConfigMap came while the process was down", c.counts)
		}
	})
}

// tidy is a counter with something to clean up.
type tidy struct{ *counter[*probe.Probe] }

func (c tidy) Cleanup(_ context.Context, r *run) loop.CleanupOutcome {
	c.calls <- r.Obj.Name
	return loop.CleanedUp()
}
