package hours

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/trace"
)

// exact lets delays be what they are on average.
func exact(o *options) { o.Loop.Retry.Jitter = -1 }

// gaps are the times between calls.
func gaps(calls []call) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(calls); i++ {
		out = append(out, calls[i].at.Sub(calls[i-1].at))
	}
	return out
}

// annotate sets an annotation of a folder; an empty value removes it.
func (w *simulation) annotate(name, key, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if value == "" {
		patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)
	}
	must(w.t, w.client.Patch(w.t.Context(), w.get(name), client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// TestEditDuringPass: a user edits the object while a call takes a minute.
func TestEditDuringPass(t *testing.T) {
	for name, returned := range map[string]error{
		"success":           nil,
		"a failure":         errors.New("out of order"),
		"refused":           external.Invalid(errors.New("no such size")),
		"for somebody":      external.Terminal(errors.New("ask the vendor")),
		"throttled an hour": external.Throttled(errors.New("too many"), time.Hour),
		"not ready":         external.NotReady(errors.New("the account is being made"), time.Hour),
	} {
		t.Run("E0-50 an edit is picked up when the pass ends with "+name, func(t *testing.T) {
			inHours(t, func(o *options) { o.CallDeadline, o.CreateGrace = 10*time.Minute, -1 }, func(w *simulation) {
				slow := true
				w.vendor.meet(func(op, _ string) error {
					if op != "create" || !slow {
						return nil
					}
					slow = false
					time.Sleep(time.Minute)
					return returned
				})
				w.create("a", "")
				w.pass(30 * time.Second)
				w.setReadOnly("a")
				w.pass(29 * time.Second)
				passes := len(records[trace.Start](w))
				if ended := len(records[trace.End](w)); ended != passes-1 {
					t.Fatalf("%d passes began and %d ended a minute after the create began", passes, ended)
				}
				w.pass(1500 * time.Millisecond)
				if now := records[trace.Start](w); len(now) <= passes {
					t.Errorf("no pass within half a second after the slow one")
				} else if g := w.get("a").Generation; w.get("a").Status.ObservedGeneration != g && !errors.As(returned, new(*external.Error)) {
					t.Errorf("generation %d is not observed: %+v", g, w.get("a").Status)
				}
			})
		})
	}
}

// TestBackoff: what is tried again after an error, and when.
func TestBackoff(t *testing.T) {
	t.Run("E0-51 E0-52 delays double up to a limit, whatever the interval", func(t *testing.T) {
		inHours(t, func(o *options) { exact(o); o.DriftInterval, o.CreateGrace = time.Minute, -1 }, func(w *simulation) {
			w.vendor.meet(func(op, _ string) error {
				if op == "create" {
					return external.Transient(errors.New("out of order"))
				}
				return nil
			})
			w.create("a", "")
			w.pass(5 * time.Hour)
			want := time.Second
			for i, gap := range gaps(w.vendor.had("create", time.Time{})) {
				if gap != want {
					t.Fatalf("retry %d came after %s, want %s", i+1, gap, want)
				}
				want = min(2*want, 10*time.Minute)
			}
			if want != 10*time.Minute {
				t.Errorf("the last delay was %s", want/2)
			}
		})
	})
	t.Run("E0-51 what only somebody can mend is not tried again", func(t *testing.T) {
		inHours(t, func(o *options) { o.DriftInterval = -1; o.Loop.MaxInterval = -1 }, func(w *simulation) {
			w.vendor.meet(func(op, _ string) error {
				if op == "create" {
					return external.Terminal(errors.New("ask the vendor"))
				}
				return nil
			})
			w.create("a", "")
			w.pass(time.Minute)
			passes := len(records[trace.Start](w))
			w.pass(24 * time.Hour)
			if now := len(records[trace.Start](w)); now != passes || len(w.vendor.had("create", time.Time{})) != 1 {
				t.Errorf("%d passes in a day, calls %s", now-passes, w.vendor.ops())
			}
		})
	})
}

// TestSuccessfulPasses: when an object is looked at again that needs nothing.
func TestSuccessfulPasses(t *testing.T) {
	t.Run("E0-53 without an interval, at the resync or after an event", func(t *testing.T) {
		inHours(t, func(o *options) { o.DriftInterval = -1 }, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			passes := len(records[trace.Start](w))
			w.pass(8 * time.Hour)
			if now := len(records[trace.Start](w)); now != passes {
				t.Errorf("%d passes in eight hours", now-passes)
			}
			w.annotate("a", api.AnnotationReconcile, "now")
			w.pass(time.Second)
			if now := len(records[trace.Start](w)); now != passes+1 {
				t.Errorf("%d passes after an event, want 1", now-passes)
			}
			w.pass(12 * time.Hour)
			if now := len(records[trace.Start](w)); now != passes+2 {
				t.Errorf("%d passes after an event and a resync, want 2", now-passes)
			}
		})
	})
	t.Run("E0-54 after a minute, and the back-off starts again", func(t *testing.T) {
		inHours(t, func(o *options) { exact(o); o.DriftInterval = time.Minute }, func(w *simulation) {
			w.vendor.takes, w.vendor.hint = 10*time.Minute, time.Minute
			w.create("a", "")
			w.pass(9 * time.Minute)
			minutes := gaps(w.vendor.had("observe", time.Time{}))[1:]
			if len(minutes) < 7 {
				t.Errorf("%d observations in nine minutes", len(minutes))
			}
			for _, gap := range minutes {
				if gap != time.Minute {
					t.Errorf("%s between two observations, want a minute", gap)
				}
			}
			w.pass(2 * time.Minute)
			fails := func(n int) {
				began := time.Now()
				w.vendor.meet(func(op, _ string) error {
					if op == "observe" && n > 0 {
						n--
						return errAway
					}
					return nil
				})
				w.pass(5 * time.Minute)
				got := gaps(w.vendor.had("observe", began))
				want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
				if len(got) < 3 || fmt.Sprint(got[:3]) != fmt.Sprint(want) {
					t.Errorf("after three failures: %v, want %v", got, want)
				}
			}
			fails(3)
			fails(3)
		})
	})
	t.Run("E0-57 soon while the API works, rarely when it does not", func(t *testing.T) {
		for _, delays := range [][2]time.Duration{{30 * time.Second, 2 * time.Minute}, {10 * time.Second, time.Hour}} {
			inHours(t, func(o *options) { o.DriftInterval = delays[1] }, func(w *simulation) {
				w.vendor.takes, w.vendor.hint = 5*time.Minute, delays[0]
				w.create("a", "")
				w.pass(5 * time.Minute)
				soon := gaps(w.vendor.had("observe", time.Time{}))[1:]
				if least := int(5*time.Minute/delays[0]) - 2; len(soon) < least {
					t.Errorf("%d observations while it is created, want at least %d", len(soon), least)
				}
				for _, gap := range soon {
					if gap != delays[0] {
						t.Errorf("%s between two observations while it is created, want %s", gap, delays[0])
					}
				}
				w.pass(time.Minute)
				began := time.Now()
				w.pass(10 * delays[1])
				rarely := gaps(w.vendor.had("observe", began))
				if len(rarely) < 8 || len(rarely) > 11 {
					t.Errorf("%d observations of one in sync, want about 10", len(rarely)+1)
				}
				for _, gap := range rarely {
					if gap < delays[1]*9/10 || gap > delays[1]*11/10 {
						t.Errorf("%s between two observations of one in sync, want about %s", gap, delays[1])
					}
				}
			})
		}
	})
	t.Run("E0-36 an interval for each kind, and for one object without a restart", func(t *testing.T) {
		inHours(t, func(o *options) { o.DriftInterval = 2 * time.Minute }, func(w *simulation) {
			w.create("a", "")
			w.create("b", "")
			w.pass(time.Minute)
			observed := func(name string, d time.Duration) (n int) {
				began := time.Now()
				w.pass(d)
				for _, c := range w.vendor.had("observe", began) {
					if c.name == name {
						n++
					}
				}
				return n
			}
			for _, step := range []struct {
				interval string
				least    int
				most     int
			}{{"", 26, 34}, {"10s", 320, 400}, {"2h", 0, 2}, {"soon", 26, 34}, {"-3s", 26, 34}, {"", 26, 34}} {
				w.annotate("a", api.AnnotationInterval, step.interval)
				w.pass(time.Second)
				if n := observed("a", time.Hour); n < step.least || n > step.most {
					t.Errorf("interval %q: %d observations in an hour", step.interval, n)
				}
				f := w.get("a")
				if wrong := step.interval == "soon" || step.interval == "-3s"; wrong != is(f, api.ConditionPolicyInvalid) || !is(f, api.ConditionReady) {
					t.Errorf("interval %q: conditions %+v", step.interval, f.Status.Conditions)
				}
				if n := observed("b", time.Hour); n < 26 || n > 34 {
					t.Errorf("interval %q of the other object: %d observations in an hour", step.interval, n)
				}
			}
		})
	})
}

// TestUnhandledErrors: the API server fails, not the vendor.
func TestUnhandledErrors(t *testing.T) {
	object := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/folders/a")
	}
	status := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/folders/a/status") }
	t.Run("E0-40 E0-61 a read that fails is counted, and nothing is written; what does not exist ends quietly", func(t *testing.T) {
		inHoursOf(t, exact, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			earlier := w.errors()
			w.breaking(object)
			w.setReadOnly("a")
			w.pass(time.Minute)
			if n := w.errors() - earlier; n < 4 || len(w.wrote()) > 0 || len(w.vendor.had("update", time.Time{})) > 0 {
				t.Errorf("%v unhandled errors, writes %v, calls %s", n, w.wrote(), w.vendor.ops())
			}
			w.breaking(nil)
			w.pass(10 * time.Minute)
			if f := w.get("a"); !is(f, api.ConditionReady) || f.Status.AppliedGeneration != 2 {
				t.Errorf("when it can be read again: %+v", f.Status)
			}
			errs := w.errors()
			must(t, w.client.Delete(w.t.Context(), w.get("a")))
			w.pass(time.Minute)
			calls := w.vendor.ops()
			var once sync.Once
			w.breaking(func(r *http.Request) bool {
				if object(r) { // it goes just before the operator reads it
					once.Do(func() { must(w.t, w.client.Delete(w.t.Context(), w.folder("a"))) })
				}
				return false
			})
			w.create("a", "")
			w.pass(time.Hour)
			if now := w.vendor.ops(); w.errors() != errs || now != calls {
				t.Errorf("%v unhandled errors, calls %s; before %s", w.errors()-errs, now, calls)
			}
		}, func(w *simulation) { w.uncached = true })
	})
	t.Run("E0-40 a status that cannot be written is counted, and nothing else is written", func(t *testing.T) {
		inHours(t, exact, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			earlier := w.errors()
			w.breaking(status)
			w.vendor.with(func() { w.vendor.items["a"].word = "IDLE" })
			w.annotate("a", api.AnnotationReconcile, "now")
			w.pass(time.Minute)
			for _, write := range w.wrote() {
				if !strings.HasSuffix(write, "/folders/a/status") {
					t.Errorf("wrote %s", write)
				}
			}
			if n := w.errors() - earlier; n < 4 {
				t.Errorf("%v unhandled errors in a minute", n)
			}
		})
	})
	// What the pass itself came to makes no difference.
	for name, meets := range map[string]error{"success": nil, "a failure": errAway, "waiting": external.NotReady(errors.New("soon"), time.Hour)} {
		t.Run("E0-58 tried again after 1 s, 2 s, 4 s and so on, after "+name, func(t *testing.T) {
			inHours(t, exact, func(w *simulation) {
				w.create("a", "")
				w.pass(time.Minute)
				earlier := w.errors()
				w.breaking(status)
				w.vendor.with(func() { w.vendor.items["a"].word = "IDLE" })
				w.vendor.meet(func(string, string) error { return meets })
				began := time.Now()
				w.annotate("a", api.AnnotationReconcile, "now")
				w.pass(20 * time.Second)
				want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
				if got := gaps(w.vendor.had("observe", began)); fmt.Sprint(got) != fmt.Sprint(want) || w.errors()-earlier != 5 {
					t.Errorf("delays %v, want %v; %v unhandled errors", got, want, w.errors()-earlier)
				}
			})
		})
	}
}

// things is a driver of Things, whose API is the same vendor.
type things struct{}

func (things) Observe(_ context.Context, r external.ObserveRequest[*thing.Thing, *vendor]) (o external.Observation[bool], err error) {
	err = r.Client.do("observe thing", r.ID, func() error {
		if i, there := r.Client.items[r.ID]; there {
			o = external.Available(i.readOnly, i.mark)
		} else {
			o = external.Missing[bool]()
		}
		return nil
	})
	return o, err
}

func (things) Compare(external.CompareRequest[*thing.Thing, bool]) external.Changes { return nil }

func (things) Create(_ context.Context, r external.CreateRequest[*thing.Thing, *vendor]) (external.CreateResponse[bool], error) {
	return external.CreateResponse[bool]{}, r.Client.do("create thing", r.ID, func() error {
		r.Client.items[r.ID] = &item{mark: r.Mark}
		return nil
	})
}

func (things) Delete(_ context.Context, r external.DeleteRequest[*thing.Thing, *vendor]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.do("delete thing", r.ID, func() error {
		delete(r.Client.items, r.ID)
		return nil
	})
}

// TestTwoKinds: each kind has its own interval in one manager, whose SyncPeriod is unset.
func TestTwoKinds(t *testing.T) {
	t.Run("E0-35 a second and a minute", func(t *testing.T) {
		inHoursOf(t, func(o *options) { o.DriftInterval = time.Second }, func(w *simulation) {
			w.create("a", "")
			must(w.t, w.client.Create(w.t.Context(), &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}))
			w.pass(time.Minute)
			began := time.Now()
			w.pass(time.Hour)
			if n := len(w.vendor.had("observe", began)); n < 3300 || n > 4000 {
				t.Errorf("%d observations of one kind in an hour, want about 3600", n)
			}
			if n := len(w.vendor.had("observe thing", began)); n < 54 || n > 67 {
				t.Errorf("%d observations of the other kind in an hour, want about 60", n)
			}
		}, func(w *simulation) {
			w.more = func(m manager.Manager) error {
				o := external.Options[*thing.Thing, *vendor]{DriftInterval: time.Minute, Connect: func(context.Context) (*vendor, error) { return w.vendor, nil }}
				return external.New(things{}, o).SetupWithManager(m)
			}
		})
	})
}

// TestLevelTriggered: nothing depends on any single event.
func TestLevelTriggered(t *testing.T) {
	t.Run("E1-02 no event arrives for a minute", func(t *testing.T) {
		inHours(t, nil, func(w *simulation) {
			w.create("a", "")
			w.pass(time.Minute)
			w.deaf(true)
			w.setReadOnly("a")
			w.create("b", "")
			must(w.t, w.client.Delete(w.t.Context(), w.get("b")))
			w.create("c", "")
			w.pass(time.Minute)
			if _, there := w.vendor.items["c"]; there {
				t.Fatal("an event arrived nevertheless")
			}
			w.deaf(false)
			w.pass(time.Minute)
			if a, c := w.get("a"), w.get("c"); !is(a, api.ConditionReady) || a.Status.AppliedGeneration != 2 || !is(c, api.ConditionReady) {
				t.Errorf("status %+v and %+v", a.Status, c.Status)
			}
			if !w.vendor.items["a"].readOnly || len(w.vendor.items) != 2 {
				t.Errorf("items %v", w.vendor.items)
			}
		})
	})
}
