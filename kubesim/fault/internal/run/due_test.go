package run

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
)

// TestDue proves that a request which a worker has only just taken can be added again without another pass, that one
// that comes later is followed by one more pass, and that delays and back-offs stay what they are.
func TestDue(t *testing.T) {
	for name, made := range map[string]newQueue{
		"with priorities": func(name string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = l })
		},
		"without priorities": func(_ string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(l)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testDue(t, made) }) })
	}
}

func testDue(t *testing.T, made newQueue) {
	acts := turn.NewQueue()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	q := onceAtATime(made, acts.Now, func() {})("q", limiter)
	defer q.ShutDown()
	var passes int
	end := make(chan struct{})
	for range 4 {
		go func() {
			for {
				r, shutdown := q.Get()
				if shutdown {
					return
				}
				passes++
				<-end
				q.Done(r)
			}
		}()
	}
	act := func(do func()) {
		do()
		synctest.Wait()
		acts.Act()
	}
	a := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	expect := func(what string, n int) {
		t.Helper()
		synctest.Wait()
		if passes != n {
			t.Errorf("%s: %d passes, want %d", what, passes, n)
		}
	}
	finish := func() { act(func() { end <- struct{}{} }) }

	act(func() {
		q.Add(a)
		synctest.Wait() // a worker takes it
		q.Add(a)        // by another handler of the same event
	})
	finish()
	expect("one event, two handlers", 1)

	act(func() { q.Add(a) })
	act(func() { q.Add(a) })
	act(func() { q.Add(a) })
	expect("events during a pass", 2)
	finish()
	expect("events during a pass, which has ended", 3)
	finish()

	act(func() { q.AddAfter(a, time.Minute) })
	expect("before it is time", 3)
	act(func() { q.AddRateLimited(a) })
	time.Sleep(time.Second)
	expect("after the back-off", 4)
	if n := q.NumRequeues(a); n != 1 {
		t.Errorf("%d retries were counted, want 1", n)
	}
	finish()
}

// TestOwnCaches proves that the events of a controller whose caches are full at different times lead to one pass.
func TestOwnCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := func(_ string, l workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return workqueue.NewTypedRateLimitingQueue(l)
		}
		p, acts := &Process{began: time.Now()}, turn.NewQueue()
		p.ownCaches.Store(true)
		q := onceAtATime(made, acts.Now, p.awaitCaches)("q", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		var passes int
		for range 4 {
			go func() {
				for {
					r, shutdown := q.Get()
					if shutdown {
						return
					}
					passes++
					time.Sleep(time.Millisecond) // until it is its turn
					q.Done(r)
				}
			}()
		}
		for range 3 {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			time.Sleep(100 * time.Millisecond)
			acts.Act()
		}
		time.Sleep(ownCachesTake)
		if q.ShutDown(); passes != 1 {
			t.Errorf("%d passes, want 1", passes)
		}
	})
}
