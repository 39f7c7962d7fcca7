package loop_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
)

// touchAll changes everything of the object in memory.
func touchAll(r *run) {
	r.Obj.Spec.Size = 99
	r.Obj.Labels = with(r.Obj.Labels, "ours", "yes")
	r.Obj.Annotations = with(r.Obj.Annotations, "example.org/ours", "yes")
	r.Obj.Status.Note = "ours"
}

// TestWriting proves what each choice of UpdateControl in the Java Operator SDK comes to.
func TestWriting(t *testing.T) {
	t.Parallel()
	t.Run("002-19 WriteNothing drops what changed in memory", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			touchAll(r)
			return loop.After(200 * time.Millisecond).Writing(loop.WriteNothing)
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		for range 3 {
			w.next(a)
		}
		got := w.get("a")
		if diff := cmp.Diff([]string{"apply status"}, w.writes()); diff != "" {
			t.Errorf("three passes write the generation once (-want +got):\n%s", diff)
		}
		if got.Spec.Size != 0 || got.Labels != nil || got.Annotations != nil || got.Status.Note != "" || got.Status.ObservedGeneration != 1 {
			t.Errorf("the server has %+v", got)
		}
		w.resize(2)
		w.await("a", "the new generation", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		if diff := cmp.Diff([]string{"apply status", "apply status"}, w.writes()); diff != "" {
			t.Errorf("and once more after a change of the spec (-want +got):\n%s", diff)
		}
	})
	t.Run("002-20 WriteStatus writes the status alone", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			touchAll(r)
			return loop.Done().Writing(loop.WriteStatus)
		})
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Labels = map[string]string{"theirs": "yes"} })
		w.next(a)
		got := w.get("a")
		if diff := cmp.Diff([]string{"apply status"}, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"theirs": "yes"}, got.Labels); diff != "" || got.Generation != 1 || got.Spec.Size != 0 || got.Annotations != nil {
			t.Errorf("the server has generation %d, size %d, annotations %v, labels (-want +got):\n%s", got.Generation, got.Spec.Size, got.Annotations, diff)
		}
		if got.Status.Note != "ours" {
			t.Errorf("the status has the note %q", got.Status.Note)
		}
	})
	t.Run("002-21 002-32 WriteMetadata leaves the status to the pass that follows", func(t *testing.T) {
		t.Parallel()
		entered, leave := make(chan struct{}, 9), make(chan struct{})
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			if r.Obj.Annotations["example.org/size"] == r.Obj.Labels["size"] && r.Obj.Generation == 2 {
				entered <- struct{}{}
				<-leave
				r.Obj.Status.Note = "second"
				return loop.Done()
			}
			if r.Obj.Generation == 1 {
				r.Obj.Status.Note = "first"
				return loop.Done()
			}
			r.Obj.Status.Note = "lost"
			r.Obj.Annotations = with(r.Obj.Annotations, "example.org/size", r.Obj.Labels["size"])
			return loop.Done().Writing(loop.WriteMetadata)
		})
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Labels = map[string]string{"size": "2"} })
		before := w.await("a", "to be Ready", ready)
		w.next(a)
		w.requests.Reset()
		w.resize(2)
		w.next(a) // the pass that writes an annotation, and nothing else
		<-entered // the pass that follows, without an event
		if diff := cmp.Diff([]string{"patch"}, w.writes()); diff != "" {
			t.Errorf("writes of the first pass (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before.Status, w.get("a").Status); diff != "" {
			t.Errorf("the status changed, observedGeneration included (-want +got):\n%s", diff)
		}
		close(leave)
		w.next(a)
		got := w.get("a")
		if diff := cmp.Diff([]string{"patch", "apply status"}, w.writes()); diff != "" {
			t.Errorf("writes of both passes (-want +got):\n%s", diff)
		}
		if got.Status.ObservedGeneration != 2 || got.Status.AppliedGeneration != 2 || got.Status.Note != "second" {
			t.Errorf("after the second pass the status is %+v", got.Status)
		}
		w.settled(a)
	})
	t.Run("WriteMetadata without a change of metadata ends", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Labels = with(r.Obj.Labels, "ours", "yes")
			return loop.Done().Writing(loop.WriteMetadata)
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		w.next(a)
		w.next(a)
		if diff := cmp.Diff([]string{"patch", "apply status"}, w.writes()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
		w.settled(a)
	})
	t.Run("WriteMetadata with an appointment does not wait for it to report", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
			r.Obj.Labels = with(r.Obj.Labels, "ours", "yes")
			r.Obj.Status.Note = "lost"
			return loop.After(time.Hour).Writing(loop.WriteMetadata)
		})
		w := newControllerTest(t, a, options{})
		w.create("a")
		if got := w.await("a", "to be Ready", ready); got.Labels["ours"] != "yes" || got.Status.Note != "" {
			t.Errorf("labels %v, note %q", got.Labels, got.Status.Note)
		}
	})
	t.Run("what OnError says is written in any case", func(t *testing.T) {
		t.Parallel()
		h := noteTaker{
			author: newAuthor(func(_ context.Context, r *run) loop.Outcome {
				r.Obj.Status.Note = "lost"
				return loop.Fail(errBroken).Writing(loop.WriteNothing)
			}),
			onError: func(_ context.Context, r *run, err error) loop.ErrorOutcome {
				r.Obj.Status.Note += err.Error()
				return loop.NoRetry()
			},
		}
		w := newControllerTest(t, h, options{})
		w.create("a")
		w.await("a", "the note of OnError alone", func(p *probe.Probe) bool { return p.Status.Note == errBroken.Error() })
	})
	t.Run("a failure is shown whatever is written", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []loop.WriteMode{loop.WriteNothing, loop.WriteStatus, loop.WriteMetadata} {
			a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
				r.Obj.Labels = with(r.Obj.Labels, "ours", "yes")
				return loop.Fail(errBroken).Writing(mode)
			})
			w := newControllerTest(t, a, options{Retry: linear(-1)})
			w.create("a")
			w.next(a)
			if got := w.get("a"); got.Status.State != "Failed" || !strings.Contains(got.Status.Message, errBroken.Error()) {
				t.Errorf("%s: state %q, message %q", mode, got.Status.State, got.Status.Message)
			}
		}
	})
	t.Run("002-23 each with a next pass", func(t *testing.T) {
		t.Parallel()
		for _, mode := range []loop.WriteMode{loop.WriteChanges, loop.WriteNothing, loop.WriteStatus, loop.WriteMetadata} {
			t.Run(mode.String(), func(t *testing.T) {
				t.Parallel()
				var calls atomic.Int64
				a := newAuthor(func(_ context.Context, r *run) loop.Outcome {
					r.Obj.Labels = with(r.Obj.Labels, "ours", "yes")
					r.Obj.Status.Note = "ours"
					if calls.Add(1) == 1 {
						return loop.After(time.Second).Writing(mode)
					}
					return loop.Done().Writing(mode)
				})
				w := newControllerTest(t, a, options{})
				w.create("a")
				one, two := w.next(a), w.next(a)
				spaced(t, time.Second, one, two)
				w.settled(a)
			})
		}
	})
	t.Run("002-25 CleanedUp removes the finalizer", func(t *testing.T) {
		t.Parallel()
		a := cleaner{author: newAuthor(nil)}
		w := newControllerTest(t, a, options{})
		w.create("a", func(p *probe.Probe) { p.Finalizers = []string{"example.org/theirs"} })
		w.await("a", "to be Ready", ready)
		w.requests.Reset()
		w.delete()
		got := w.await("a", "to lose our finalizer", func(p *probe.Probe) bool { return len(p.Finalizers) == 1 })
		if diff := cmp.Diff([]string{"example.org/theirs"}, got.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		if n := a.count("cleanup"); n != 1 {
			t.Errorf("%d cleanups, want 1", n)
		}
		w.patch("a", `{"metadata":{"finalizers":null}}`)
		w.gone()
		w.removedOnce()
	})
}

// TestCleanupCannotReschedule: that a finalizer goes and that Cleanup is called again cannot be said at once.
func TestCleanupCannotReschedule(t *testing.T) {
	t.Parallel()
	t.Run("002-26 it does not compile", func(t *testing.T) {
		t.Parallel()
		out, err := gobuild.Output(t, "./testdata/reschedule", "-o", t.TempDir())
		if err == nil {
			t.Fatal("a Cleanup that removes the finalizer and asks for another call compiles")
		}
		for _, want := range []string{
			"cannot use loop.After(time.Second) (value of struct type loop.Outcome) as loop.CleanupOutcome value",
			"loop.CleanedUp().After undefined",
			"too many arguments in call to loop.CleanedUp",
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("the compiler does not say %q:\n%s", want, out)
			}
		}
		if n := strings.Count(string(out), ".go:"); n != 3 {
			t.Errorf("the compiler has %d complaints, want 3:\n%s", n, out)
		}
	})
}
