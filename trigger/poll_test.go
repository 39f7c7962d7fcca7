package trigger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// remote is a service outside the cluster, at which the fetches for some objects fail.
type remote struct {
	mu      sync.Mutex
	down    map[string]bool // by name; "all" is FetchAll
	fetched map[string][]time.Duration
	start   time.Time
}

func (r *remote) get(name string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetched[name] = append(r.fetched[name], time.Since(r.start))
	if r.down[name] {
		return 0, errors.New("no route to " + name)
	}
	return 1, nil
}

func (r *remote) one(_ context.Context, m *corev1.ConfigMap) (int, error) { return r.get(m.Name) }

func (r *remote) all(context.Context) (map[types.NamespacedName]int, error) {
	value, err := r.get("all")
	return map[types.NamespacedName]int{key("a"): value}, err
}

func (r *remote) set(down ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = map[string]bool{}
	for _, name := range down {
		r.down[name] = true
	}
}

// polling is a poll, once a minute, by a process that leads.
type polling struct {
	*Poll[*corev1.ConfigMap, int]
	*remote
	desk  *desk
	queue queue
	// objects are what the cache has; a test changes it.
	objects *controllertest.FakeInformer
	// lines are what was logged as errors.
	lines []string
}

func newPolling(t *testing.T, global bool) *polling {
	t.Helper()
	p := &polling{
		remote: &remote{fetched: map[string][]time.Duration{}, start: time.Now()}, desk: newDesk(t),
		Poll:  &Poll[*corev1.ConfigMap, int]{Name: "levels", Every: time.Minute},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	if p.Fetch = p.one; global {
		p.Fetch, p.FetchAll = nil, p.all
	}
	informers := &informertest.FakeInformers{Scheme: p.desk.scheme}
	p.desk.cache = informers
	var sources []source.Source
	target := p.desk.target(&sources)
	target.Log = funcr.New(func(_, args string) {
		if strings.Contains(args, `"error"=`) {
			p.lines = append(p.lines, args)
		}
	}, funcr.Options{})
	if err := p.Attach(target); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { stop(); done.Wait(); p.queue.ShutDown() })
	for _, s := range sources {
		if err := s.Start(ctx, p.queue); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	if !global {
		objects, err := informers.FakeInformerFor(ctx, configMap("a"))
		if err != nil {
			t.Fatal(err)
		}
		p.objects = objects
		objects.Add(configMap("a"))
		objects.Add(configMap("b"))
	}
	for _, r := range p.desk.runs {
		done.Go(func() { _ = r.Start(ctx) })
	}
	return p
}

// after lets time pass and returns who was woken.
func (p *polling) after(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	var names []string
	for name := range queued(p.queue) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestPollPeriod: values are fetched once in a period, whatever the machine does meanwhile.
func TestPollPeriod(t *testing.T) {
	for name, names := range map[string][]string{
		"002-62 polling, for each object": {"a", "b"},
		"002-62 polling, for all objects": {"all"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPolling(t, len(names) == 1)
				p.after(10*time.Minute + time.Second)
				for _, name := range names {
					p.remote.mu.Lock()
					times := p.fetched[name]
					p.remote.mu.Unlock()
					if len(times) < 10 || len(times) > 12 {
						t.Fatalf("the value of %s was fetched %d times in ten periods: %v", name, len(times), times)
					}
					for n := 2; n < len(times); n++ { // the second fetch is earlier, at another time for each object
						if gap := times[n] - times[n-1]; gap != p.Every {
							t.Errorf("fetch %d of %s came %s after the one before, want %s", n, name, gap, p.Every)
						}
					}
				}
			})
		})
	}
}

// TestPollTellsOfFailures: an object is woken when its fetches begin to fail, and when they succeed again.
func TestPollTellsOfFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		why         string
		all         bool
		down        string
		fail, works []string
	}{
		"one object":  {why: "the other one's value is there", down: "b", fail: []string{"b"}, works: []string{"b"}},
		"all objects": {why: "none of them has a value that is new", all: true, down: "all", fail: []string{"a", "b"}, works: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPolling(t, tt.all)
				p.after(5 * time.Minute)
				step := func(what string, want []string, down ...string) {
					t.Helper()
					p.set(down...)
					if diff := cmp.Diff(want, p.after(5*time.Minute)); diff != "" {
						t.Errorf("%s: %s; woken (-want +got):\n%s", what, tt.why, diff)
					}
				}
				step("as before", nil)
				step("it begins to fail", tt.fail, tt.down)
				step("it goes on to fail", nil, tt.down)
				if err := p.Err(configMap("b")); err == nil {
					t.Error("a pass does not see that the fetch failed")
				}
				step("it works again", tt.works)
			})
		})
	}
	t.Run("the first fetch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPolling(t, false)
			p.set("b")
			if diff := cmp.Diff([]string{"a", "b"}, p.after(time.Second/2)); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	})
}

// TestOnePollFails: one object whose fetches fail leaves the process ready, and is in the log once.
func TestOnePollFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPolling(t, false)
		p.set("b")
		ready := func(want string) {
			t.Helper()
			p.after(time.Hour)
			got := ""
			if err := p.desk.ready["source-levels"](nil); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("readiness %q, want %q", got, want)
			}
		}
		ready("")
		if len(p.lines) != 1 || !strings.Contains(p.lines[0], "no route to b") {
			t.Errorf("the log has %d lines in an hour, want one: %v", len(p.lines), p.lines)
		}
		p.set("a", "b")
		p.after(time.Hour)
		if err := p.desk.ready["source-levels"](nil); err == nil {
			t.Error("the process is ready although the fetches for all objects fail")
		}
		p.set("b")
		ready("")
		p.objects.Delete(configMap("a"))
		p.after(time.Hour)
		if err := p.desk.ready["source-levels"](nil); err == nil {
			t.Error("the process is ready although the fetch for its only object fails")
		}
		p.objects.Delete(configMap("b"))
		ready("")
	})
}
