package loop

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/probe"
)

// successor is a process that has just begun to lead, with a cache that shows an old version of the object:
// its watch is late, and what came last was written by its predecessor.
type successor struct {
	t   *testing.T
	c   *Controller[*probe.Probe]
	old *probe.Probe // what the cache shows until it catches up; then it is nil
	// reads are those past the cache, writes what was sent to the API server, tries are the passes.
	reads  int
	writes []string
	tries  []time.Duration
	events *events.FakeRecorder
	start  time.Time
	server client.WithWatch
}

// behind returns a successor whose cache has old while the API server has now, nil if the object is gone.
func behind(t *testing.T, old, now *probe.Probe, reconcile func(context.Context, *Run[*probe.Probe]) Outcome) *successor {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := probe.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &successor{t: t, old: old, events: events.NewFakeRecorder(100), start: time.Now()}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&probe.Probe{})
	if now != nil {
		builder = builder.WithObjects(now)
	}
	s.server = builder.Build()
	s.c = s.process(reconcile)
	s.c.events = s.events
	s.c.live = interceptor.NewClient(s.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			s.reads++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	s.c.client = interceptor.NewClient(s.server, interceptor.Funcs{
		Get: s.cached,
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, obj, p, opts...)
			s.writes = append(s.writes, "metadata "+reasonOf(err))
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			err := c.SubResource(name).Patch(ctx, obj, p, opts...)
			s.writes = append(s.writes, name+" "+reasonOf(err))
			return err
		},
	})
	return s
}

// process is a process of the operator, with a cache that shows what there is.
func (s *successor) process(reconcile func(context.Context, *Run[*probe.Probe]) Outcome) *Controller[*probe.Probe] {
	c := New(Reconciler[*probe.Probe](follower{reconcile}), Options[*probe.Probe]{})
	c.scheme, c.name, c.gvk, c.finalizer = s.server.Scheme(), "probe", probe.GroupVersion.WithKind("Probe"), mine
	c.client, c.live, c.events, c.log = s.server, s.server, &events.FakeRecorder{}, logr.Discard()
	return c
}

func reasonOf(err error) string {
	if err == nil {
		return "ok"
	}
	return string(apierrors.ReasonForError(err))
}

// cached reads what the cache shows.
func (s *successor) cached(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	into, ok := obj.(*probe.Probe)
	if s.old == nil || !ok {
		return c.Get(ctx, key, obj, opts...)
	}
	s.old.DeepCopyInto(into)
	return nil
}

// follower is the author.
type follower struct {
	reconcile func(context.Context, *Run[*probe.Probe]) Outcome
}

func (f follower) Reconcile(ctx context.Context, r *Run[*probe.Probe]) Outcome {
	return f.reconcile(ctx, r)
}

func (f follower) Cleanup(context.Context, *Run[*probe.Probe]) CleanupOutcome { return CleanedUp() }

// passes makes passes over the object for a while, as the queue does.
func (s *successor) passes(d time.Duration) {
	s.t.Helper()
	req := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "a"}}
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.tries = append(s.tries, time.Since(s.start))
		result, err := s.c.Reconcile(s.t.Context(), req)
		wait := result.RequeueAfter
		if err != nil {
			wait = s.c.memory.When(req)
		}
		if wait == 0 {
			wait = d
		}
		<-time.After(min(wait, time.Until(end)))
	}
}

// busiest is the largest number of passes within a second.
func (s *successor) busiest() int {
	most := 0
	for i, from := range s.tries {
		n := len(s.tries) - i
		if j := slices.IndexFunc(s.tries[i:], func(at time.Duration) bool { return at >= from+time.Second }); j >= 0 {
			n = j
		}
		most = max(most, n)
	}
	return most
}

func version(number, finalizer string) *probe.Probe {
	p := seenAs("u", number)
	p.Generation = 1
	if finalizer != "" {
		p.Finalizers = []string{finalizer}
	}
	return p
}

// TestBehind: a process whose cache is behind its predecessor's finalizer finds out with one request, makes
// a few passes that do nothing, and goes on when the cache has caught up.
func TestBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		visits := 0
		s := behind(t, version("5", ""), version("9", mine), func(context.Context, *Run[*probe.Probe]) Outcome {
			visits++
			return Done()
		})
		s.passes(3 * time.Second)
		if want := []string{"metadata Conflict"}; !slices.Equal(s.writes, want) || s.reads != 1 || visits != 0 {
			t.Errorf("behind, it wrote %q with %d reads and %d visits; want %q, one and none", s.writes, s.reads, visits, want)
		}
		if n := s.busiest(); n > 10 {
			t.Errorf("behind, it made %d passes within a second, want 10 at most", n)
		}
		s.old = nil
		s.passes(2 * time.Second)
		if visits != 1 || !slices.Equal(s.writes[1:], []string{"status ok"}) {
			t.Errorf("with the present object it wrote %q in %d visits, want a status in one", s.writes[1:], visits)
		}
	})
}

// TestStuck: a process whose cache does not catch up reads past it.
func TestStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		visits := 0
		s := behind(t, version("5", ""), version("9", mine), func(context.Context, *Run[*probe.Probe]) Outcome {
			visits++
			return Done()
		})
		s.passes(10 * time.Second)
		if visits == 0 || s.reads != 2 {
			t.Errorf("in 10 s it visited the object %d times and read it %d times past the cache, want once, and twice", visits, s.reads)
		}
	})
}

// TestStatusBehind: a process whose cache is behind its predecessor's status does not overwrite that: Ready has
// been True since then, and there is nothing to tell.
func TestStatusBehind(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]bool{"it catches up": false, "it does not": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				done := func(context.Context, *Run[*probe.Probe]) Outcome { return Done() }
				s := behind(t, version("5", mine), nil, done)
				now, since := s.reported(s.process(done))
				<-time.After(time.Minute)
				s.writes = nil
				s.passes(2 * time.Second)
				if !stuck {
					s.old = nil
				}
				s.passes(30 * time.Second)
				var then probe.Probe
				if err := s.server.Get(t.Context(), client.ObjectKeyFromObject(now), &then); err != nil {
					t.Fatal(err)
				}
				if c := meta.FindStatusCondition(then.Status.Conditions, api.ConditionReady); c == nil || !c.LastTransitionTime.Equal(&since) {
					t.Errorf("Ready is %+v, and was True since %s", c, since)
				}
				if want := []string{"status Conflict"}; !slices.Equal(s.writes, want) || len(s.events.Events) > 0 || s.busiest() > 10 {
					t.Errorf("it wrote %q with %d events and up to %d passes in a second; want %q, none, and 10 at most",
						s.writes, len(s.events.Events), s.busiest(), want)
				}
			})
		})
	}
}

// reported lets a predecessor report on the object, which is an older version in the cache of s.
func (s *successor) reported(before *Controller[*probe.Probe]) (*probe.Probe, metav1.Time) {
	s.t.Helper()
	created := version("", mine)
	created.ResourceVersion = ""
	if err := s.server.Create(s.t.Context(), created); err != nil {
		s.t.Fatal(err)
	}
	s.old = created.DeepCopy()
	if _, err := before.Reconcile(s.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(created)}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.server.Get(s.t.Context(), client.ObjectKeyFromObject(created), created); err != nil {
		s.t.Fatal(err)
	}
	ready := meta.FindStatusCondition(created.Status.Conditions, api.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		s.t.Fatalf("the predecessor reported %+v", created.Status)
	}
	return created, ready.LastTransitionTime
}

// TestAuthorBehind: an author who finds out that the object at hand is old, or gone, by a read past the cache, is not
// called again before the cache has caught up.
func TestAuthorBehind(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]*probe.Probe{"old": version("9", mine), "gone": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				visits := 0
				s := behind(t, version("5", mine), now, func(ctx context.Context, r *Run[*probe.Probe]) Outcome {
					visits++
					live := &probe.Probe{}
					err := r.Live().Get(ctx, client.ObjectKeyFromObject(r.Obj), live)
					if err != nil || live.ResourceVersion != r.Obj.ResourceVersion {
						return Fail(Outdated(errors.New("it has changed")))
					}
					return Done()
				})
				s.passes(3 * time.Second)
				if visits != 1 || s.busiest() > 10 || len(s.writes) > 0 {
					t.Errorf("%d visits, up to %d passes in a second, writes %q; want one, 10 at most, none", visits, s.busiest(), s.writes)
				}
				if s.old = nil; now == nil {
					return
				}
				if s.passes(2 * time.Second); visits != 2 || !slices.Equal(s.writes, []string{"status ok"}) {
					t.Errorf("with the present object it wrote %q after %d visits, want a status after the second", s.writes, visits)
				}
			})
		})
	}
}

// TestBackOffOfConflicts: what is refused as if the object had changed, though it has not, is tried less and less
// often, and is a failure in the end.
func TestBackOffOfConflicts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := behind(t, version("5", mine), version("5", mine), func(context.Context, *Run[*probe.Probe]) Outcome {
			return Fail(Outdated(errors.New("always")))
		})
		s.old = nil
		s.passes(20 * time.Second)
		if n := s.busiest(); n > 10 {
			t.Errorf("%d passes within a second, want 10 at most", n)
		}
		if !slices.Contains(s.writes, "status ok") {
			t.Errorf("nothing was reported in 20 s: %q", s.writes)
		}
	})
}
