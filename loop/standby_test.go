package loop

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/testenv"
)

// tally counts the visits of each object.
type tally struct {
	mu     sync.Mutex
	visits map[string]int
}

func (c *tally) Reconcile(_ context.Context, r *Run[*probe.Probe]) Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.visits[r.Obj.Name]++
	return Done()
}

func (c *tally) Cleanup(context.Context, *Run[*probe.Probe]) CleanupOutcome { return CleanedUp() }

// seen returns how many objects were visited, and how often.
func (c *tally) seen() (objects, visits int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.visits {
		visits += n
	}
	return len(c.visits), visits
}

// sizes are those of what a controller remembers.
func (m *memory) sizes() (objects, standby int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.objects), len(m.standby)
}

// until waits for ok, which must come.
func until(t *testing.T, why string, ok func() bool) {
	t.Helper()
	if !poll.Until(ok) {
		t.Fatalf("waited in vain for this: %s", why)
	}
}

// TestStandby: a process that stands by, warm, remembers no object that is gone, and once it
// leads it visits those that live.
func TestStandby(t *testing.T) {
	t.Parallel()
	const come, live = 100, 5
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.AllCRDs)
	admin := testenv.Client(t, cfg, probe.AddToScheme, coordinationv1.AddToScheme)
	namespace := testenv.Namespace(t, cfg)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "leader"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)),
			AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
		},
	}
	if err := admin.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := probe.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Controller:     config.Controller{SkipNameValidation: new(true)},
		LeaderElection: true, LeaderElectionID: "leader", LeaderElectionNamespace: namespace, RetryPeriod: new(100 * time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	author := &tally{visits: map[string]int{}}
	c := New(author, Options[*probe.Probe]{})
	if err := c.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	create := func(name string) *probe.Probe {
		p := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := admin.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i := range live {
		create("lives" + strconv.Itoa(i))
	}
	for i := range come {
		p := create("comes" + strconv.Itoa(i))
		until(t, "the process that stands by sees the object", func() bool {
			return mgr.GetCache().Get(t.Context(), client.ObjectKeyFromObject(p), &probe.Probe{}) == nil
		})
		if err := admin.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "it has forgotten what is gone", func() bool {
		objects, standby := c.memory.sizes()
		return objects == 0 && standby == live
	})
	if objects, _ := author.seen(); objects > 0 {
		t.Errorf("a process that stands by visited %d objects", objects)
	}
	if err := admin.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	until(t, "it leads, and visits what lives", func() bool {
		objects, _ := author.seen()
		return objects == live
	})
	until(t, "the passes are over", func() bool { _, since := c.Longest(); return since.IsZero() })
	objects, standby := c.memory.sizes()
	if _, visits := author.seen(); objects != live || standby != 0 || visits != live {
		t.Errorf("%d objects are remembered, %d stand by, %d visits; want %d, none, %d", objects, standby, visits, live, live)
	}
}

// TestForgotten: a process that leads forgets an object once it is gone and seen to be, and not
// before what belonged to it is cleaned up.
func TestForgotten(t *testing.T) {
	key := types.NamespacedName{Namespace: "n", Name: "a"}
	v := &vanished{last: seenAs("u", "5", mine)}
	tests := map[string]struct {
		why  string
		did  func(*memory)
		want bool
	}{
		"nothing but an event": {why: "it never was", did: func(*memory) {}, want: true},
		"met, and its end not seen": {
			why: "whose finalizer we removed must be known then", did: func(m *memory) { m.with(key, func(r *remembered) { r.meet("u") }) },
		},
		"met, and its end seen": {
			why: "nothing more will be heard of it", want: true,
			did: func(m *memory) { m.with(key, func(r *remembered) { r.meet("u"); r.gone = true }) },
		},
		"vanished": {
			why: "it is to be cleaned up",
			did: func(m *memory) { m.with(key, func(r *remembered) { r.gone, r.vanished = true, []*vanished{v} }) },
		},
		"vanished and cleaned up": {
			why: "all is done", want: true,
			did: func(m *memory) {
				m.with(key, func(r *remembered) { r.gone, r.vanished = true, []*vanished{v} })
				m.finished(key, m.nextVanished(key))
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.lead()
			m.event(key)
			tc.did(m)
			m.drop(key)
			if objects, _ := m.sizes(); (objects == 0) != tc.want {
				t.Errorf("%s: forgotten is %t, want %t", tc.why, objects == 0, tc.want)
			}
		})
	}
}

// TestJudgeRemoval: which ends of an object call for a cleanup.
func TestJudgeRemoval(t *testing.T) {
	tests := map[string]struct {
		why  string
		end  removalFacts
		want removal
	}{
		"past the finalizer": {
			why: "a DELETE that was under way", end: removalFacts{finalizer: true, seen: true}, want: removalVanished,
		},
		"never finalized": {why: "nothing was begun", end: removalFacts{seen: true}},
		"marked": {
			why: "the last finalizer and the object go in the same instant", end: removalFacts{finalizer: true, seen: true, marked: true},
		},
		"released": {why: "we let it go", end: removalFacts{finalizer: true, seen: true, released: true, met: true}},
		"unseen, just finalized": {
			why: "a relist hid the same race", end: removalFacts{finalizer: true, met: true, fresh: true}, want: removalVanished,
		},
		"unseen, long finalized": {
			why: "the cluster may have come back from a backup: nothing is destroyed", end: removalFacts{finalizer: true, met: true}, want: removalUnclear,
		},
		"unseen, another's": {why: "who worked on it knows", end: removalFacts{finalizer: true}},
		"unseen, released":  {why: "we let it go", end: removalFacts{finalizer: true, met: true, fresh: true, released: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judgeRemoval(tc.end); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.why, got, tc.want)
			}
		})
	}
}
