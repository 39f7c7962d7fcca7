package loop

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

const mine = "probes.probe.trimtab.dev/finalizer"

func seenAs(uid types.UID, version string, finalizers ...string) *probe.Probe {
	return &probe.Probe{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "a", UID: uid, ResourceVersion: version, Finalizers: finalizers,
	}}
}

// TestStale: which copies of an object are older than what this process did to it.
func TestStale(t *testing.T) {
	key := types.NamespacedName{Namespace: "n", Name: "a"}
	tests := map[string]struct {
		why  string
		did  func(*memory)
		read *probe.Probe
		want bool
	}{
		"nothing was written": {
			why: "a first look", did: func(*memory) {}, read: seenAs("u", "5"),
		},
		"older than our write": {
			why: "the cache lags", did: func(m *memory) { m.wrote(seenAs("u", "5"), "9") }, read: seenAs("u", "5"), want: true,
		},
		"our write itself": {
			why: "the cache has caught up", did: func(m *memory) { m.wrote(seenAs("u", "5"), "9") }, read: seenAs("u", "9"),
		},
		"versions are numbers, not texts": {
			why: "10 comes after 9", did: func(m *memory) { m.wrote(seenAs("u", "8"), "9") }, read: seenAs("u", "10"),
		},
		"a write that arrives late takes nothing back": {
			why:  "answers may overtake one another",
			did:  func(m *memory) { m.wrote(seenAs("u", "5"), "9"); m.wrote(seenAs("u", "5"), "7") },
			read: seenAs("u", "8"), want: true,
		},
		"a namesake": {
			why: "our write was to another object", did: func(m *memory) { m.wrote(seenAs("u", "5"), "9") }, read: seenAs("v", "5"),
		},
		"released, and the finalizer still shows": {
			why: "cleaning up twice is what this prevents", did: func(m *memory) { m.release(key, "u") }, read: seenAs("u", "5", mine), want: true,
		},
		"released, and others keep it": {
			why: "it is as it should be", did: func(m *memory) { m.release(key, "u") }, read: seenAs("u", "5", "example.org/theirs"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			tc.did(m)
			if got, _ := m.stale(tc.read, mine); got != tc.want {
				t.Errorf("%s: stale is %t, want %t", tc.why, got, tc.want)
			}
		})
	}
}

// TestNamesake: an object made anew under an old name starts without its failures.
func TestNamesake(t *testing.T) {
	m := newMemory()
	key := client.ObjectKeyFromObject(seenAs("u", "1"))
	m.with(key, func(r *remembered) {
		r.meet("u")
		r.ladder.start(time.Now(), Retry{Attempts: 1})
		r.ladder.failed(time.Now(), Retry{Attempts: 1}, 0, noJitter)
		r.unwritten = 3
	})
	m.with(key, func(r *remembered) { r.meet("u") })
	m.with(key, func(r *remembered) {
		if r.ladder.attempts != 1 || r.unwritten != 3 {
			t.Errorf("the same object lost its failures: %+v", r)
		}
		r.meet("v")
		if info := r.ladder.start(time.Now(), Retry{Attempts: 1}); info.Attempt != 0 || info.Last || r.unwritten != 0 {
			t.Errorf("the namesake starts at %+v, %d unwritten", info, r.unwritten)
		}
	})
}

// TestWhen: a failure that nobody decided a delay for is no busy loop.
func TestWhen(t *testing.T) {
	m := newMemory()
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "a"}}
	if d := m.When(req); d != time.Second {
		t.Errorf("held back for %s, want a second", d)
	}
	m.with(req.NamespacedName, func(r *remembered) { r.delay = 20 * time.Millisecond })
	if d := m.When(req); d != 20*time.Millisecond {
		t.Errorf("held back for %s, want what the pass decided", d)
	}
}

// TestConflictsInARow: passes that worked on an old copy are failures if there are many and nobody else
// writes, and none as long as somebody does.
func TestConflictsInARow(t *testing.T) {
	t.Parallel()
	object := func(version int) client.Object {
		return &probe.Probe{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: strconv.Itoa(version)}}
	}
	r := &remembered{own: "10", ownUID: "u"}
	for i := range 100 {
		if n := r.conflict(object(11 + i)); n >= mostConflicts {
			t.Fatalf("others write, and conflict %d counts as the %dth", i, n)
		}
	}
	if r.conflict(object(110)); r.conflict(object(110)) < mostConflicts {
		t.Error("nobody writes any more, and conflicts do not count")
	}
	r = &remembered{own: "10", ownUID: "u"}
	for range mostConflicts {
		r.conflict(object(10))
	}
	if r.own = "12"; r.conflict(object(12)) < mostConflicts {
		t.Error("our own write ends a row of conflicts")
	}
}
