package loop

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
