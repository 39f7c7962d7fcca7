package loop

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/trigger"
)

// nothing is an author that has nothing to do.
type nothing[T client.Object] struct{}

func (nothing[T]) Reconcile(context.Context, *Run[T]) Outcome { return Done() }

// TestRevisionIsChecked: a revision without which a restart would miss something is refused at the start.
func TestRevisionIsChecked(t *testing.T) {
	t.Parallel()
	type probes = Options[*probe.Probe]
	for want, err := range map[string]error{
		"embed it in the status of *probe.Plain, or leave Revision empty": New(nothing[*probe.Plain]{}, Options[*probe.Plain]{Revision: "1"}).check("plain"),
		"cannot be combined with EveryChange":                             New(nothing[*probe.Probe]{}, probes{Revision: "1", Generation: EveryChange}).check("probe"),
		"cannot be combined with IndexKeys":                               New(competing{}, probes{Revision: "1"}).check("probe"),
		"cannot be combined with Options.Sources": New(nothing[*probe.Probe]{}, probes{
			Revision: "1", Sources: []trigger.Source[*probe.Probe]{trigger.External[*probe.Probe]{Waker: &trigger.Waker{}}},
		}).check("probe"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

type competing struct{ nothing[*probe.Probe] }

func (competing) IndexKeys(*probe.Probe) []string { return nil }

// disposer is an author with something to clean up.
type disposer struct{ nothing[*probe.Probe] }

func (disposer) Cleanup(context.Context, *Run[*probe.Probe]) CleanupOutcome { return CleanedUp() }

// TestNoFinalizerIsChecked: a controller whose cleanup would never be called does not start.
func TestNoFinalizerIsChecked(t *testing.T) {
	t.Parallel()
	off := Options[*probe.Probe]{NoFinalizer: true}
	t.Run("002-15 a Cleaner with NoFinalizer is an error at the start", func(t *testing.T) {
		t.Parallel()
		const want = "options of controller probe: Options.NoFinalizer is set, but objects need a finalizer because the controller cleans up " +
			"before an object is deleted, which would never happen without one; leave NoFinalizer false, or remove what needs the finalizer"
		s := runtime.NewScheme()
		if err := probe.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
		c := New(disposer{}, off)
		if _, err := c.Needs(s); err == nil || err.Error() != want {
			t.Errorf("Needs: %v, want %s", err, want)
		}
		// Nothing but the scheme is asked of a manager before that.
		if err := c.SetupWithManager(managerWith{scheme: s}); err == nil || err.Error() != want {
			t.Errorf("SetupWithManager: %v, want %s", err, want)
		}
	})
	for name, tt := range map[string]struct {
		author Reconciler[*probe.Probe]
		o      Options[*probe.Probe]
		want   string
	}{
		"an ordinary reconciler": {Wrap[*probe.Probe](reconcile.Func(nil)), off, "looks after finalizers itself; leave NoFinalizer false"},
		"nothing to clean up":    {nothing[*probe.Probe]{}, off, ""},
		"a Cleaner":              {disposer{}, Options[*probe.Probe]{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := New(tt.author, tt.o).check("probe"); (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

// managerWith is a manager that has a scheme and nothing else.
type managerWith struct {
	manager.Manager
	scheme *runtime.Scheme
}

func (m managerWith) GetScheme() *runtime.Scheme      { return m.scheme }
func (managerWith) GetRESTMapper() apimeta.RESTMapper { return nil }

type configDisposer struct{ nothing[*corev1.ConfigMap] }

func (configDisposer) Cleanup(context.Context, *Run[*corev1.ConfigMap]) CleanupOutcome {
	return CleanedUp()
}

// TestFinalizerOfCoreKinds: the API server takes no finalizer that is made of an empty group.
func TestFinalizerOfCoreKinds(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	const want = "set Options.Finalizer, for example to example.org/configmap"
	err := New(configDisposer{}, Options[*corev1.ConfigMap]{}).SetupWithManager(managerWith{scheme: s})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q in it", err, want)
	}
}

// TestWrongWiring: what is wrong with a controller is said when it is set up, with the way out.
func TestWrongWiring(t *testing.T) {
	t.Parallel()
	type probes = Options[*probe.Probe]
	type sources = []trigger.Source[*probe.Probe]
	probesOnly := runtime.NewScheme()
	if err := probe.AddToScheme(probesOnly); err != nil {
		t.Fatal(err)
	}
	var none *trigger.Poll[*probe.Probe, int]
	for name, tt := range map[string]struct {
		scheme *runtime.Scheme
		o      probes
		want   string
	}{
		"no scheme":               {runtime.NewScheme(), probes{}, "the scheme lacks the controller's kind; add its AddToScheme"},
		"no scheme of a source":   {probesOnly, probes{Sources: sources{trigger.Owned[*probe.Probe]{Of: &corev1.ConfigMap{}}}}, "the scheme lacks a kind that a source watches; add its AddToScheme"},
		"a finalizer":             {probesOnly, probes{Finalizer: "mine"}, `finalizer "mine" needs a domain, for example example.org/mine`},
		"a negative deadline":     {probesOnly, probes{Deadline: -1}, "is negative; leave it zero for 2 minutes"},
		"negative workers":        {probesOnly, probes{Workers: -1}, "leave it zero for 4"},
		"a negative retry":        {probesOnly, probes{Retry: Retry{Initial: -1}}, "leave them zero for 1 second and 10 minutes"},
		"the longest one, too":    {probesOnly, probes{Retry: Retry{Max: -1}}, "leave them zero for 1 second and 10 minutes"},
		"delays that shrink":      {probesOnly, probes{Retry: Retry{Multiplier: 0.5}}, "would shrink delays; use 1 or more"},
		"half a rate limit":       {probesOnly, probes{RateLimit: RateLimit{Passes: 2}}, "set both, or leave both zero for no limit"},
		"no source":               {probesOnly, probes{Sources: sources{none}}, "source 0 of Options.Sources is nil; leave it out"},
		"a negative interval":     {probesOnly, probes{Sources: sources{&trigger.Poll[*probe.Probe, int]{Every: -1, Fetch: func(context.Context, *probe.Probe) (int, error) { return 0, nil }}}}, "needs Every, the time between two fetches"},
		"several of them at once": {probesOnly, probes{Deadline: -1, Workers: -1}, "2 minutes\n-1 workers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := New(nothing[*probe.Probe]{}, tt.o)
			if err := c.SetupWithManager(managerWith{scheme: tt.scheme}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("SetupWithManager: %v, want %q in it", err, tt.want)
			}
			if _, err := c.Needs(tt.scheme); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Needs: %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestResumedAtAnotherTime: restarts that come sooner than a pass do not put it off for ever.
func TestResumedAtAnotherTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(nothing[*probe.Probe]{}, Options[*probe.Probe]{Revision: "1"})
		c.name = "probe"
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 1}}
		p.Status.AppliedGeneration, p.Status.ObservedGeneration = 1, 1
		p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		inputs, err := c.inputs(p)
		if err != nil {
			t.Fatal(err)
		}
		p.Status.LastPass = &api.LastPass{Inputs: inputs, Next: &metav1.Duration{Duration: time.Hour}}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		waits := map[time.Duration]bool{}
		for range 4 {
			start := time.Now()
			if !c.resume(p, q) {
				t.Fatal("the object is not settled")
			}
			req, _ := q.Get()
			q.Done(req)
			wait := time.Since(start)
			if wait > time.Hour {
				t.Errorf("the pass comes after %s", wait)
			}
			waits[wait] = true
		}
		if len(waits) < 3 {
			t.Errorf("four starts put off the pass by %v", waits)
		}
		if c.unneeded, p.Finalizers = "example.org/old", []string{"example.org/old"}; c.resume(p, q) {
			t.Error("an object that has a finalizer which it does not need any more is passed over")
		}
	})
}

// TestDeletionIsNews: a kind without generations, and an update that the watch delivers together with the deletion mark.
func TestDeletionIsNews(t *testing.T) {
	t.Parallel()
	t.Run("002-37 a deletion mark passes the filter, whatever came with it", func(t *testing.T) {
		t.Parallel()
		filter := newsFilter(New(nothing[*corev1.ConfigMap]{}, Options[*corev1.ConfigMap]{}))
		before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
		after := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "3", Labels: map[string]string{"theirs": "yes"}}}
		update := event.TypedUpdateEvent[*corev1.ConfigMap]{ObjectOld: before, ObjectNew: after}
		if filter.Update(update) {
			t.Error("a label is news")
		}
		after.DeletionTimestamp = new(metav1.Now())
		if !filter.Update(update) {
			t.Error("a deletion mark is no news")
		}
	})
}

// TestStrippedContent: an update that differs in nothing that the cache has changed something else, such as the data of a
// Secret, and one that differs in metadata did not.
func TestStrippedContent(t *testing.T) {
	t.Parallel()
	c := New(nothing[*corev1.Secret]{}, Options[*corev1.Secret]{})
	secret := func(version, label string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Labels: map[string]string{"a": label}}}
	}
	before := secret("1", "x")
	for name, tc := range map[string]struct {
		after *corev1.Secret
		want  bool
	}{"data": {secret("2", "x"), true}, "a label": {secret("2", "y"), false}, "a relist": {secret("1", "x"), false}} {
		if got := c.contentChanged(before, tc.after); got != tc.want {
			t.Errorf("%s: changed %t, want %t", name, got, tc.want)
		}
	}
}
