package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// Cloud returns the scenarios of an API by HTTP that takes marks in a second call.
func Cloud() []fault.Scenario {
	return []fault.Scenario{
		cloudScenario("cloud-later", true, twoCalls()),
		withItem(cloudScenario("cloud-occupied", true, itemOfOthers())),
	}
}

// Outages returns the scenarios in which that API throttles or is down.
func Outages() []fault.Scenario {
	return []fault.Scenario{cloudScenario("cloud-outage", false, outage())}
}

// cloudOperator is the operator of things in the cloud, with one controller.
func cloudOperator(controller func(*fault.Env) operator.Controller) func(*fault.Env) operator.Options {
	return func(env *fault.Env) operator.Options {
		return operator.Options{
			Name: "cloud", AddToScheme: thing.AddToScheme, CRDs: thing.CRDs,
			Controllers: func() ([]operator.Controller, error) { return []operator.Controller{controller(env)}, nil },
		}
	}
}

func cloudScenario(name string, later bool, steps []fault.Step) fault.Scenario {
	options := cloudOperator(func(env *fault.Env) operator.Controller {
		return external.New(items{later: later, env: env}, external.Options[*thing.Thing, *cloudClient]{
			Connect:     func(context.Context) (*cloudClient, error) { return newCloudClient(env), nil },
			CreateGrace: time.Second, UniqueNames: true, MarkLater: later,
		})
	})
	return fault.Scenario{
		Name: name, Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI { return cloudfake.New() },
		Steps:       steps, Patience: 5 * time.Minute, Lag: behind,
		Reads: 21,
	}
}

// withItem lets somebody have made an item before.
func withItem(s fault.Scenario) fault.Scenario {
	s.ExternalAPI = func() fault.ExternalAPI {
		c := cloudfake.New()
		c.Put("a", cloudfake.Item{Size: 7})
		return c
	}
	return s
}

func item(name string) *thing.Thing {
	return &thing.Thing{ObjectMeta: named(name, nil), Spec: thing.Spec{Size: 1}}
}

// twoCalls is an item that one call creates and another marks.
func twoCalls() []fault.Step {
	a := item("a")
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(cloudHas("a size 1, marked")),
		fault.Delete(a).Gone(a).Expecting(cloudHas()),
	}
}

// itemOfOthers is an item that was there before, without a mark, as those are that are made here.
func itemOfOthers() []fault.Step {
	a := item("a")
	return []fault.Step{
		fault.Create(a).Expecting(reason(a, "NotOurs")).Expecting(cloudHas("a size 7")),
		fault.Delete(a).Gone(a).Expecting(cloudHas("a size 7")),
	}
}

// How long the two outages last, and how many calls the cloud tolerates in each: a few for each time
// that it asks to wait, and a few for a new process, which has to find out.
const (
	throttled      = 30 * time.Second
	throttledFor   = 15 * time.Second // at a time
	mostThrottled  = 10
	away           = 15 * time.Second
	mostAway       = 30
	mostEvents     = 8 // about one object, in both
	backAfterwards = 10 * time.Second
)

// outage is three items whose API throttles when they are to be created, and is down when they are
// to be changed. The objects try it in turns then, and must not report every try.
func outage() []fault.Step {
	a, b, c := item("a"), item("b"), item("c")
	made := onCloud(together("create three while the cloud throttles", fault.Create(a), fault.Create(b), fault.Create(c)),
		func(c *cloudfake.Cloud) { c.Throttle(throttled, throttledFor, mostThrottled) })
	resized := onCloud(together("resize three while the cloud is down", resize(a), resize(b), resize(c)),
		func(c *cloudfake.Cloud) { c.Leave(away, mostAway) })
	made.Wait, resized.Wait = throttled+throttledFor, away+backAfterwards
	ready := func(s fault.Step) fault.Step {
		return s.Becomes(a, api.ConditionReady).Becomes(b, api.ConditionReady).Becomes(c, api.ConditionReady)
	}
	return []fault.Step{
		ready(made).Expecting(cloudHas("a size 1, marked", "b size 1, marked", "c size 1, marked")),
		ready(resized).Expecting(cloudHas("a size 2, marked", "b size 2, marked", "c size 2, marked")).
			Expecting(fewEvents("a")).Expecting(fewEvents("b")).Expecting(fewEvents("c")),
		together("delete three", fault.Delete(a), fault.Delete(b), fault.Delete(c)).Gone(a).Gone(b).Gone(c).Expecting(cloudHas()),
	}
}

// fewEvents expects at most mostEvents events about an object.
func fewEvents(about string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var all corev1.EventList
		if err := w.Client.List(ctx, &all); err != nil {
			return err
		}
		all.Items = slices.DeleteFunc(all.Items, func(e corev1.Event) bool { return e.InvolvedObject.Name != about })
		if n := len(all.Items); n > mostEvents {
			return fmt.Errorf("%d events are about %s, the last of them %q", n, about, all.Items[n-1].Message)
		}
		return nil
	}
}

func resize(t *thing.Thing) fault.Step { return fault.Merge(t, `{"spec":{"size":2}}`) }

// onCloud does something to the cloud together with a step.
func onCloud(step fault.Step, act func(*cloudfake.Cloud)) fault.Step {
	do := step.Do
	step.Do = func(ctx context.Context, w *fault.World) error {
		c, ok := w.ExternalAPI.(*cloudfake.Cloud)
		if !ok {
			return fmt.Errorf("the external API is a %T", w.ExternalAPI)
		}
		act(c)
		return do(ctx, w)
	}
	return step
}

// cloudHas expects these items, each with its state, and nothing else.
func cloudHas(want ...string) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		var got []string
		for _, t := range w.ExternalAPI.Resources() {
			got = append(got, t.ID+" "+t.State)
		}
		if strings.Join(got, "; ") != strings.Join(want, "; ") {
			return fmt.Errorf("there is %q in the cloud; want %q", got, want)
		}
		return nil
	}
}
