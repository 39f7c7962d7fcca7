package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/trace"
)

const finalizer = "probes.probe.trimtab.dev/finalizer"

type probeRun = loop.Run[*probe.Probe]

// tanks is a controller of Probes that cleans up.
type tanks struct {
	reconcile func(context.Context, *probeRun) loop.Outcome
	cleanup   func(*probeRun) loop.CleanupOutcome
}

func (p tanks) Reconcile(ctx context.Context, r *probeRun) loop.Outcome {
	if p.reconcile == nil {
		r.Obj.Status.Note = fmt.Sprint(r.Obj.Spec.Size)
		return loop.Done()
	}
	return p.reconcile(ctx, r)
}

func (p tanks) Cleanup(_ context.Context, r *probeRun) loop.CleanupOutcome {
	if p.cleanup == nil {
		return loop.CleanedUp()
	}
	return p.cleanup(r)
}

func (p tanks) controller() looptest.Controller {
	return loop.New[*probe.Probe](p, loop.Options[*probe.Probe]{})
}

func tank(change ...func(*probe.Probe)) *probe.Probe {
	p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: probe.ProbeSpec{Size: 1}}
	for _, c := range change {
		c(p)
	}
	return p
}

func finalized(p *probe.Probe) { p.Finalizers = []string{finalizer} }

func cluster(objects ...client.Object) looptest.Cluster {
	return looptest.Cluster{AddToScheme: probe.AddToScheme, Objects: objects}
}

var errLeak = errors.New("the tank leaks")

// TestRun: what single passes do.
func TestRun(t *testing.T) {
	t.Parallel()
	author := tanks{
		reconcile: func(_ context.Context, r *probeRun) loop.Outcome {
			switch r.Obj.Spec.Size {
			case 0:
				r.Event("Warning", "Empty", "there is no water")
				return loop.After(time.Minute)
			case 13:
				return loop.Fail(errLeak).Because("Leaks")
			}
			r.Obj.Status.Note = fmt.Sprint(r.Obj.Spec.Size)
			return loop.Done()
		},
	}
	size := func(n int) func(*probe.Probe) { return func(p *probe.Probe) { p.Spec.Size = n } }
	deleting := func(p *probe.Probe) { p.DeletionTimestamp = new(metav1.Now()) }
	looptest.Run(t, looptest.Suite{New: author.controller, Cluster: cluster()}, map[string]looptest.Case{
		"a new object": {
			Why: "the finalizer comes first, and the status is one write", Object: tank(),
			Want: looptest.Want{
				Outcome: "Done", State: "Succeeded", Message: "the object matches its spec",
				Writes: []string{
					`patch probes n/a {"metadata":{"finalizers":["probes.probe.trimtab.dev/finalizer"]}}`,
					`apply probes/status n/a`,
				},
				Events: []string{"Normal Succeeded"}, Conditions: []string{"Ready True Succeeded", "no Stalled"},
			},
			Then: func(t *testing.T, env *looptest.Env) {
				if again := env.Pass(tank()); len(again.Writes) > 0 {
					t.Errorf("a second pass wrote %q", again.Writes)
				}
			},
		},
		"later": {
			Why: "the author asks for the next pass", Object: tank(finalized, size(0)),
			Want: looptest.Want{
				Outcome: "After", Next: time.Minute, Writes: []string{"apply probes/status n/a"},
				Events: []string{"Warning Empty there is no water", "Normal Succeeded"},
			},
		},
		"a failure": {
			Why: "it is shown and tried again", Object: tank(finalized, size(13)),
			Want: looptest.Want{
				Outcome: "Fail", State: "Failed", Conditions: []string{"Ready False Leaks the tank leaks"},
				Writes: []string{"apply probes/status n/a"}, Events: []string{"Warning Leaks the tank leaks"},
			},
		},
		"a deletion": {
			Why: "the finalizer goes, and with it the object", Object: tank(finalized, deleting),
			Want: looptest.Want{Outcome: "Removed", Writes: []string{"patch probes n/a"}, Gone: true},
		},
		"no object": {Why: "there is nothing to do, now or later", Object: tank(), Absent: true, Want: looptest.Want{Next: looptest.Never}},
		"a status that is refused": {
			Why: "the pass is repeated", Object: tank(finalized), Faults: []looptest.Fault{{On: "apply probes/status", Nth: 1, Code: http.StatusInternalServerError}},
			Want: looptest.Want{Outcome: "Fail", Next: time.Second, Writes: []string{"apply probes/status n/a"}},
			Then: func(t *testing.T, env *looptest.Env) {
				<-time.After(time.Second)
				if passes := env.Settle(); len(passes) != 1 || passes[0].State != "Succeeded" {
					t.Errorf("passes %v", passes)
				}
			},
		},
	})
}

// TestEnv: what is between passes.
func TestEnv(t *testing.T) {
	t.Parallel()
	settled := func(t *testing.T, env *looptest.Env, want ...string) {
		t.Helper()
		var got []string
		for _, r := range env.Settle() {
			got = append(got, r.Outcome)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	}
	patch := func(t *testing.T, env *looptest.Env, body string) {
		t.Helper()
		if err := env.Client().Patch(t.Context(), tank(), client.RawPatch("application/merge-patch+json", []byte(body))); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("updates cause passes as the filter of the controller says", func(t *testing.T) {
		t.Parallel()
		env := looptest.NewEnv(t, tanks{}.controller(), cluster())
		settled(t, env)
		if err := env.Client().Create(t.Context(), tank()); err != nil {
			t.Fatal(err)
		}
		settled(t, env, "Done")
		patch(t, env, `{"metadata":{"labels":{"a":"b"}}}`)
		settled(t, env)
		patch(t, env, `{"spec":{"size":2}}`)
		settled(t, env, "Done")
		if err := env.Client().Delete(t.Context(), tank()); err != nil {
			t.Fatal(err)
		}
		settled(t, env, "Removed", "") // the last one is by the event of the removal
	})
	t.Run("retries are counted, and come when the loop has them due", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := tanks{reconcile: func(context.Context, *probeRun) loop.Outcome { return loop.Fail(errLeak) }}.controller()
			env := looptest.NewEnv(t, c, cluster(tank(finalized)))
			for attempt := range 3 {
				passes := env.Settle()
				if len(passes) != 1 || passes[0].Attempt != attempt || !errors.Is(passes[0].Err, errLeak) {
					t.Fatalf("attempt %d: %v", attempt, passes)
				}
				<-time.After(passes[0].Next - time.Nanosecond)
				settled(t, env)
				<-time.After(time.Nanosecond)
			}
		})
	})
	t.Run("an object that vanished is cleaned up", func(t *testing.T) {
		t.Parallel()
		var vanished []bool
		c := tanks{cleanup: func(r *probeRun) loop.CleanupOutcome {
			vanished = append(vanished, r.Vanished())
			return loop.CleanedUp()
		}}.controller()
		env := looptest.NewEnv(t, c, cluster(tank()))
		settled(t, env, "Done")
		env.Vanish(tank())
		passes := env.Settle()
		if len(passes) != 1 || len(passes[0].Writes) > 0 || !slices.ContainsFunc(passes[0].Events, func(e string) bool { return strings.HasPrefix(e, "Normal CleanedUp") }) {
			t.Errorf("passes %v", passes)
		}
		if diff := cmp.Diff([]bool{true}, vanished); diff != "" {
			t.Errorf("cleanups of vanished objects (-want +got):\n%s", diff)
		}
	})
	t.Run("a process that starts again has forgotten, and the cluster has not", func(t *testing.T) {
		t.Parallel()
		env := looptest.NewEnv(t, tanks{}.controller(), cluster(tank()))
		settled(t, env, "Done")
		env.Restart(tanks{}.controller())
		if passes := env.Settle(); len(passes) != 1 || len(passes[0].Writes) > 0 {
			t.Errorf("passes %v, want one without writes", passes)
		}
	})
	t.Run("children are created, and go with their owner", func(t *testing.T) {
		t.Parallel()
		set := children.Of(children.Named("water", func(p *probe.Probe) *corev1.ConfigMap {
			return &corev1.ConfigMap{Data: map[string]string{"size": fmt.Sprint(p.Spec.Size)}}
		}))
		env := looptest.NewEnv(t, children.New(set, children.Options[*probe.Probe]{}), cluster(tank()))
		first := env.Settle()
		if len(first) == 0 || len(first[0].Writes) != 2 || !strings.HasPrefix(first[0].Writes[0], "apply configmaps n/a") {
			t.Fatalf("passes %v", first)
		}
		if r := env.Pass(tank()); len(r.Writes) > 0 {
			t.Errorf("a second pass wrote %q", r.Writes)
		}
		list := &corev1.ConfigMapList{}
		if err := env.Client().List(t.Context(), list, client.InNamespace("n")); err != nil || len(list.Items) != 1 {
			t.Fatalf("%d ConfigMaps, %v", len(list.Items), err)
		}
		if err := env.Client().Delete(t.Context(), &list.Items[0]); err != nil {
			t.Fatal(err)
		}
		if again := env.Settle(); len(again) == 0 || len(again[0].Writes) != 1 {
			t.Errorf("after the child was deleted: %v", again)
		}
		if err := env.Client().Delete(t.Context(), tank()); err != nil {
			t.Fatal(err)
		}
		env.Settle()
		if err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(&list.Items[0]), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("the child is left: %v", err)
		}
	})
}

// TestTrace: the result of a pass has what the pass recorded, and nothing of the one before it.
func TestTrace(t *testing.T) {
	t.Parallel()
	env := looptest.NewEnv(t, tanks{}.controller(), cluster(tank()))
	for n, want := range []string{
		"Probe n/a, pass 1\n  start    generation 1\n  patch    object: metadata.finalizers\n  state    (new) → Succeeded (Succeeded): the object matches its spec\n  apply    status: status\n  end      Done; again in 9h42m\n",
		"Probe n/a, pass 1\n  start    generation 1\n  end      Done; again in 9h42m\n",
	} {
		if diff := cmp.Diff(want, trace.Transcript(env.Pass(tank()).Trace)); diff != "" {
			t.Errorf("pass %d (-want +got)\n%s", n+1, diff)
		}
	}
}

// TestPreconditions: the server in memory refuses what is meant for another object or version, as a real one does.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	live, other := types.UID("this"), types.UID("other")
	settings := func(change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m"}}
		for _, c := range change {
			c(m)
		}
		return m
	}
	tests := map[string]func(ctx context.Context, c client.Client) error{
		"delete another object": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, settings(), client.Preconditions{UID: &other})
		},
		"delete another version": func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, settings(), client.Preconditions{UID: &live, ResourceVersion: new("99")})
		},
		"patch another object": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, settings(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"uid":"other"}}`)))
		},
		"patch another version": func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, settings(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"99"}}`)))
		},
		"apply another object": func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, corev1apply.ConfigMap("m", "n").WithUID(other), client.FieldOwner("test"))
		},
		"apply an object that is not there": func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, corev1apply.ConfigMap("none", "n").WithUID(other), client.FieldOwner("test"))
		},
	}
	for name, do := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := looptest.NewEnv(t, tanks{}.controller(), cluster(settings(func(m *corev1.ConfigMap) { m.UID = live })))
			if err := do(t.Context(), env.Client()); !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if err := env.Client().Get(t.Context(), client.ObjectKeyFromObject(settings()), settings()); err != nil {
				t.Error(err)
			}
		})
	}
	env := looptest.NewEnv(t, tanks{}.controller(), cluster(settings()))
	if err := env.Client().Apply(t.Context(), corev1apply.ConfigMap("m", "n").WithData(map[string]string{"a": "b"}), client.FieldOwner("test")); err != nil {
		t.Errorf("without preconditions: %v", err)
	}
}

// TestLag: the cache is late, and the loop does not work on what it shows then.
func TestLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lag := &looptest.Lag{Resource: "probes"}
		c := cluster(tank())
		another := &looptest.Lag{Resource: "secrets"}
		another.Hold()
		c.Lags = []*looptest.Lag{lag, another}
		env := looptest.NewEnv(t, tanks{}.controller(), c)
		lag.Hold()
		env.Settle()
		if r := env.Pass(tank()); r.Outcome != "" || !r.Again || r.Next > time.Second {
			t.Errorf("a pass over an old copy: %v", r)
		}
		lag.Release()
		if r := env.Pass(tank()); r.Outcome != "Done" || len(r.Writes) > 0 {
			t.Errorf("a pass over the new copy: %v", r)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := cluster(tank())
		c.Lags = []*looptest.Lag{{Delay: 300 * time.Millisecond}}
		env := looptest.NewEnv(t, tanks{}.controller(), c)
		env.Settle()
		<-time.After(299 * time.Millisecond)
		if r := env.Pass(tank()); r.Outcome != "" {
			t.Errorf("a pass over an old copy: %v", r)
		}
		<-time.After(time.Millisecond)
		if r := env.Pass(tank()); r.Outcome != "Done" {
			t.Errorf("a pass over the new copy: %v", r)
		}
	})
}

// TestInject: each fault does what it says.
func TestInject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why   string
		fault looptest.Fault
		// err is the error of a create, and found whether the object is there afterwards.
		err   func(error) bool
		found bool
		later bool
	}{
		"another resource": {"it does not fit", looptest.Fault{On: "create secrets"}, func(err error) bool { return err == nil }, true, true},
		"another verb":     {"it does not fit", looptest.Fault{On: "delete configmaps"}, func(err error) bool { return err == nil }, true, true},
		"a subresource":    {"it does not fit", looptest.Fault{On: "create configmaps/status"}, func(err error) bool { return err == nil }, true, true},
		"the second":       {"this is the first", looptest.Fault{Nth: 2}, func(err error) bool { return err == nil }, true, false},
		"a conflict":       {"nothing is sent", looptest.Fault{On: "create configmaps", Nth: 1, Code: 409}, apierrors.IsConflict, false, true},
		"lost":             {"it is carried out", looptest.Fault{On: "* configmaps", Nth: 1, Code: 500, After: true}, apierrors.IsInternalError, true, true},
		"cut":              {"there is no answer", looptest.Fault{Nth: 1}, func(err error) bool { return errors.Is(err, looptest.ErrCut) }, false, true},
		"cut later":        {"there is no answer", looptest.Fault{Nth: 1, After: true}, func(err error) bool { return errors.Is(err, looptest.ErrCut) }, true, true},
		"killed":           {"nothing is sent any more", looptest.Fault{Nth: 1, Kill: true}, func(err error) bool { return errors.Is(err, looptest.ErrKilled) }, false, false},
		"killed later":     {"nothing is sent any more", looptest.Fault{Nth: 1, After: true, Kill: true}, func(err error) bool { return errors.Is(err, looptest.ErrKilled) }, true, false},
		"slow down":        {"the client waits and sends it again", looptest.Fault{Nth: 1, Code: 429, RetryAfter: 7 * time.Second}, func(err error) bool { return err == nil }, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var created, second error
				began, took := time.Now(), time.Duration(0)
				author := tanks{reconcile: func(ctx context.Context, r *probeRun) loop.Outcome {
					created = r.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "first"}})
					took = time.Since(began)
					second = r.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "second"}})
					return loop.Done()
				}}
				c := cluster(tank(finalized))
				injector := looptest.Inject(test.fault)
				c.Wrap = append(c.Wrap, injector.Wrap)
				env := looptest.NewEnv(t, author.controller(), c)
				env.Pass(tank())
				if !test.err(created) {
					t.Errorf("%s: error %v", test.why, created)
				}
				if err := env.Client().Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "first"}, &corev1.ConfigMap{}); (err == nil) != test.found {
					t.Errorf("%s: found: %v, want %t", test.why, err, test.found)
				}
				if (second == nil) != test.later {
					t.Errorf("%s: the next request: %v, want success %t", test.why, second, test.later)
				}
				if took != test.fault.RetryAfter {
					t.Errorf("%s: took %s, want %s", test.why, took, test.fault.RetryAfter)
				}
				select {
				case <-injector.Killed():
				default:
					if test.fault.Kill {
						t.Error("Killed is not closed")
					}
				}
			})
		})
	}
}
