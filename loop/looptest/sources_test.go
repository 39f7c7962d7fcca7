package looptest_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	"github.com/trimtab-dev/trimtab/trigger"
)

// TestSources: each source wakes an object in memory, also after a restart of the process. No goroutine is left at the end: the
// bubble would fail.
func TestSources(t *testing.T) {
	t.Parallel()
	type source = trigger.Source[*probe.Probe]
	a := types.NamespacedName{Namespace: "n", Name: "a"}
	var events chan string
	fetched := 0
	create := func(env *looptest.Env) {
		t.Helper()
		yes := true
		err := env.Client().Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: probe.GroupVersion.String(), Kind: "Probe", Name: "a", UID: "uid-of-a", Controller: &yes},
		}}})
		if err != nil {
			t.Error(err)
		}
	}
	hour := func(*looptest.Env) { <-time.After(time.Hour) }
	tests := map[string]struct {
		why  string
		make func() source
		act  func(*looptest.Env)
	}{
		"a kind": {"an object of it appears", func() source {
			return trigger.Kind[*probe.Probe, *corev1.ConfigMap]{Wakes: func(*corev1.ConfigMap) []types.NamespacedName { return []types.NamespacedName{a} }}
		}, create},
		"references": {"what it names appears", func() source {
			return trigger.Reference[*probe.Probe]{To: &corev1.ConfigMap{}, Names: func(*probe.Probe) []types.NamespacedName {
				return []types.NamespacedName{{Namespace: "n", Name: "c"}}
			}}
		}, create},
		"children":  {"one appears", func() source { return trigger.Owned[*probe.Probe]{Of: &corev1.ConfigMap{}} }, create},
		"a tracker": {"what a pass read appears", func() source { return &trigger.Tracker[*probe.Probe]{} }, create},
		"a source that was added": {"an object of its kind appears", func() source {
			return &trigger.Dynamic[*probe.Probe]{Sources: map[string]source{"children": trigger.Owned[*probe.Probe]{Of: &corev1.ConfigMap{}}}}
		}, create},
		"metadata that was added": {"an object of its kind appears", func() source {
			of := &metav1.PartialObjectMetadata{}
			of.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			return &trigger.Dynamic[*probe.Probe]{Sources: map[string]source{"children": trigger.Owned[*probe.Probe]{Of: of}}}
		}, create},
		"a schedule": {"it is time", func() source { return &trigger.Cron[*probe.Probe]{Schedule: "@hourly"} }, hour},
		"polls of all": {"the answer differs", func() source {
			return &trigger.Poll[*probe.Probe, int]{Every: time.Minute, FetchAll: func(context.Context) (map[types.NamespacedName]int, error) {
				fetched++
				return map[types.NamespacedName]int{a: fetched}, nil
			}}
		}, hour},
		"polls of each": {"the answer differs", func() source {
			return &trigger.Poll[*probe.Probe, int]{Every: time.Minute, Fetch: func(context.Context, *probe.Probe) (int, error) {
				fetched++
				return fetched, nil
			}}
		}, hour},
		"a channel": {"an event comes", func() source {
			return &trigger.Channel[*probe.Probe, string]{From: events, Wakes: func(string) []types.NamespacedName { return []types.NamespacedName{a} }}
		}, func(*looptest.Env) { events <- "news" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events = make(chan string)
				start := func() looptest.Controller {
					s := test.make()
					return loop.New[*probe.Probe](tanks{reconcile: func(ctx context.Context, r *probeRun) loop.Outcome {
						if tracker, is := s.(*trigger.Tracker[*probe.Probe]); is {
							_ = tracker.Get(ctx, r.Obj, types.NamespacedName{Namespace: "n", Name: "c"}, &corev1.ConfigMap{})
						}
						return loop.Done()
					}}, loop.Options[*probe.Probe]{Sources: []source{s}})
				}
				env := looptest.NewEnv(t, start(), cluster(tank(func(p *probe.Probe) { p.UID = "uid-of-a" })))
				settled := func() int {
					<-time.After(time.Second) // sources with watches of their own poll
					synctest.Wait()
					return len(env.Settle())
				}
				settled()
				if n := settled(); n != 0 {
					t.Errorf("%d passes without a reason", n)
				}
				test.act(env)
				if settled() == 0 {
					t.Errorf("no pass although %s", test.why)
				}
				env.Restart(start())
				settled()
				c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
				if err := client.IgnoreNotFound(env.Client().Delete(t.Context(), c)); err != nil {
					t.Error(err)
				}
				settled()
				test.act(env)
				if settled() == 0 {
					t.Errorf("no pass after a restart although %s", test.why)
				}
			})
		})
	}
}

// TestInbound: a source that receives requests can be there, and another process takes its address.
func TestInbound(t *testing.T) {
	t.Parallel()
	server := &trigger.Server{Address: "127.0.0.1:0"}
	start := func() looptest.Controller {
		return loop.New[*probe.Probe](tanks{}, loop.Options[*probe.Probe]{Sources: []trigger.Source[*probe.Probe]{&trigger.Inbound[*probe.Probe, string]{
			Server: server, Path: "/", Authenticate: trigger.Anyone(),
			Decode: func(*http.Request, []byte) (string, error) { return "", nil },
			Wakes:  func(string) []types.NamespacedName { return nil },
		}}})
	}
	env := looptest.NewEnv(t, start(), cluster(tank()))
	if len(env.Settle()) == 0 {
		t.Error("no pass")
	}
	server = &trigger.Server{Address: server.Addr()}
	env.Restart(start())
}
