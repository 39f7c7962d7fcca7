package loop

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/probe"
)

// stuck is a process whose cache shows ConfigMaps as they were when it last caught up.
type stuck struct {
	*successor

	// shown is what the cache shows. A timer may change it during a pass.
	shown atomic.Pointer[client.WithWatch]
	// lists and gets are reads of ConfigMaps past the cache.
	lists, gets int
	// passes are those over the Probe a in which the author was called.
	passes []time.Duration
}

func newStuck(t *testing.T, author func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome) *stuck {
	t.Helper()
	s := &stuck{}
	s.successor = behind(t, nil, version("5", mine), func(ctx context.Context, r *Run[*probe.Probe]) Outcome {
		s.passes = append(s.passes, time.Since(s.start))
		return author(ctx, r, s)
	})
	if err := corev1.AddToScheme(s.server.Scheme()); err != nil {
		t.Fatal(err)
	}
	s.catchUp()
	s.c.name = t.Name() // for its metrics
	s.c.client = interceptor.NewClient(s.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, is := obj.(*corev1.ConfigMap); is {
				return (*s.shown.Load()).Get(ctx, key, obj)
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return (*s.shown.Load()).List(ctx, list, opts...)
		},
	})
	s.c.live = interceptor.NewClient(s.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			s.gets++
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			s.lists++
			return c.List(ctx, list, opts...)
		},
	})
	s.c.views = newViews(nil)
	s.c.views.watched(s.c.client, &probe.Probe{}, probe.GroupVersion.WithKind("Probe"))
	return s
}

// catchUp has the cache show what there is.
func (s *stuck) catchUp() {
	s.t.Helper()
	all := &corev1.ConfigMapList{}
	if err := s.server.List(s.t.Context(), all); err != nil {
		s.t.Fatal(err)
	}
	s.shown.Store(new(fake.NewClientBuilder().WithScheme(s.server.Scheme()).WithLists(all).Build()))
}

// watch has the cache hold ConfigMaps before the first pass.
func (s *stuck) watch() {
	s.c.views.watched(s.c.client, &corev1.ConfigMap{}, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
}

// unseenWrites counts what is remembered of the Probe a.
func (s *stuck) unseenWrites() (n int) {
	s.c.memory.with(types.NamespacedName{Namespace: "n", Name: "a"}, func(r *remembered) { n = len(r.ledger.unseen) })
	return n
}

// TestConsistentTime: how long a cache that lags is waited for.
func TestConsistentTime(t *testing.T) {
	t.Parallel()
	t.Run("G3 a lagging cache blocks a worker for 100 ms at most, in all lists of a pass together", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			var took time.Duration
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				began := time.Now()
				if err := r.Client().Create(ctx, configMap("child")); err != nil {
					t.Error(err)
				}
				for range 3 {
					var list corev1.ConfigMapList
					if err := r.Client().List(ctx, &list); err != nil || len(list.Items) != 1 {
						t.Errorf("the list has %d objects, %v; want the one that was created", len(list.Items), err)
					}
				}
				took = time.Since(began)
				return Done()
			})
			s.watch()
			req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "a"}}
			if _, err := s.c.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if took != 100*time.Millisecond || s.lists != 3 {
				t.Errorf("three lists took %s, %d of them live; want 100ms and 3", took, s.lists)
			}
			began := time.Now()
			result, err := s.c.Reconcile(t.Context(), req)
			if err != nil || time.Since(began) != 0 || result.RequeueAfter == 0 || len(s.passes) != 1 {
				t.Errorf("the next pass took %s and was put off by %s, %v; want no time", time.Since(began), result.RequeueAfter, err)
			}
		})
	})
	t.Run("G1 a list waits for the cache and is no request if that catches up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				if err := r.Client().Create(ctx, configMap("child")); err != nil {
					t.Error(err)
				}
				time.AfterFunc(30*time.Millisecond, s.catchUp)
				var list corev1.ConfigMapList
				if err := r.Client().List(ctx, &list); err != nil || len(list.Items) != 1 || s.lists != 0 {
					t.Errorf("the list has %d objects, %v, and took %d requests", len(list.Items), err, s.lists)
				}
				return Done()
			})
			s.watch()
			s.successor.passes(time.Second)
		})
	})
	t.Run("G4 after 5 s a pass reads the kind live, counted", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				if len(s.passes) == 1 {
					if err := r.Client().Create(ctx, configMap("child")); err != nil {
						t.Error(err)
					}
					return After(time.Millisecond)
				}
				var list corev1.ConfigMapList
				err := r.Client().List(ctx, &list)
				if err != nil || len(list.Items) != 1 {
					t.Errorf("the list has %d objects, %v", len(list.Items), err)
				}
				if err := r.Client().Get(ctx, client.ObjectKeyFromObject(configMap("child")), &corev1.ConfigMap{}); err != nil {
					t.Error(err)
				}
				return Done()
			})
			s.watch()
			s.successor.passes(20 * time.Second)
			if len(s.passes) != 2 || s.passes[1] < 5*time.Second || s.passes[1] > 10*time.Second || s.busiest() > 20 {
				t.Errorf("the author was called at %v, with up to %d tries in a second", s.passes, s.busiest())
			}
			if s.lists != 1 || s.gets != 1 || testutil.ToFloat64(liveReads.WithLabelValues(t.Name(), "Probe")) != 2 {
				t.Errorf("%d lists and %d gets were live, the metric says %v", s.lists, s.gets, testutil.ToFloat64(liveReads.WithLabelValues(t.Name(), "Probe")))
			}
		})
	})
	t.Run("G4 an object that the cache does not hold is waited for once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				obj := configMap("outside")
				err := r.Client().Get(ctx, client.ObjectKeyFromObject(obj), obj)
				if len(s.passes) == 1 {
					err = r.Client().Create(ctx, obj)
				} else if err == nil {
					obj.Data = map[string]string{"pass": fmt.Sprint(len(s.passes))}
					err = r.Client().Update(ctx, obj)
				}
				if err != nil {
					t.Errorf("pass %d: %v", len(s.passes), err)
				}
				if len(s.passes) == 10 {
					return Done()
				}
				return After(time.Second)
			})
			s.watch()
			s.successor.passes(30 * time.Second)
			if len(s.passes) != 10 || s.passes[1] < 5*time.Second || s.passes[9]-s.passes[1] != 8*time.Second {
				t.Errorf("the author was called at %v", s.passes)
			}
		})
	})
	t.Run("a cache that has everything up to the write holds no such object", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				if len(s.passes) == 1 {
					if err := r.Client().Create(ctx, configMap("outside")); err != nil {
						t.Error(err)
					}
					return After(time.Second)
				}
				return Done()
			})
			s.watch()
			for _, w := range s.c.views.all {
				w.newest = func(context.Context) string { return "1000" }
			}
			s.successor.passes(10 * time.Second)
			if len(s.passes) != 2 || s.passes[1] != time.Second {
				t.Errorf("the author was called at %v", s.passes)
			}
		})
	})
	t.Run("what was written is forgotten when it is shown, though no pass follows", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStuck(t, func(ctx context.Context, r *Run[*probe.Probe], s *stuck) Outcome {
				for i := range 100 {
					if err := r.Client().Create(ctx, configMap(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
				return Done()
			})
			s.watch()
			s.successor.passes(time.Second)
			if n := s.unseenWrites(); n != 100 {
				t.Fatalf("%d writes are remembered", n)
			}
			s.catchUp()
			<-time.After(staleLimit)
			synctest.Wait()
			if n := s.unseenWrites(); n != 0 {
				t.Errorf("%d writes are remembered though the cache shows them", n)
			}
		})
	})
}
