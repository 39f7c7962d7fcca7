package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// Bystander is a NATS server, in memory or real, that somebody besides the operator uses.
type Bystander interface {
	fault.ExternalAPI
	// Request sends one request to the JetStream API and returns the answer.
	Request(subject string, body []byte) []byte
}

// Story is a scenario's steps and the objects in them.
type Story struct {
	Stream   *v1alpha1.Stream
	Consumer *v1alpha1.Consumer
	Steps    []fault.Step
	// Whole is the last step after which all that is asked for exists.
	Whole int
}

// Life is the life of a Stream and of a Consumer that needs it: create, update, drift,
// delete, one thing at a time. An empty namespace is "default".
func Life(namespace string) Story {
	s, c := ordersStream(), billingConsumer()
	s.Namespace, c.Namespace = namespace, namespace
	ready := func(step fault.Step) fault.Step {
		return step.Becomes(s, api.ConditionReady).Becomes(c, api.ConditionReady)
	}
	steps := []fault.Step{
		fault.Create(c).Expecting(reason(c, "DependenciesNotReady")),
		ready(fault.Create(s)),
		ready(fault.Merge(c, `{"spec":{"maxDeliver":7}}`)).Expecting(natsHas("consumer orders/billing", `"max_deliver":7`)),
		ready(fault.Merge(s, `{"spec":{"maxMsgs":1000}}`)).Expecting(natsHas("stream orders", `"max_msgs":1000`)),
		ready(noticed(fault.Change("somebody limits the stream", limitStream))).Expecting(natsHas("stream orders", `"max_msgs":1000`)),
		ready(noticed(fault.Change("somebody deletes the consumer", func(b Bystander) error {
			return asked(b, "CONSUMER.DELETE.orders.billing", ``)
		}))).Expecting(natsHas("consumer orders/billing", `"max_deliver":7`)),
		fault.Delete(c).Gone(c),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
	return Story{Stream: s, Consumer: c, Steps: steps, Whole: len(steps) - 3}
}

// limitStream changes the stream behind the operator's back.
func limitStream(b Bystander) error {
	var info struct {
		Config map[string]any `json:"config"`
	}
	if err := json.Unmarshal(ask(b, "STREAM.INFO.orders", ``), &info); err != nil {
		return err
	}
	info.Config["max_msgs"] = 5
	body, err := json.Marshal(info.Config)
	if err != nil {
		return err
	}
	return asked(b, "STREAM.UPDATE.orders", string(body))
}

func ask(b Bystander, request, body string) []byte {
	return b.Request("$JS.API."+request, []byte(body))
}

// asked is [ask] for those who want no answer but yes.
func asked(b Bystander, request, body string) error {
	answer := ask(b, request, body)
	if strings.Contains(string(answer), `"error"`) {
		return fmt.Errorf("NATS answers %s with %s", request, answer)
	}
	return nil
}

// natsHas expects a thing, by kind and name, with something in its state.
func natsHas(what, state string) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		for _, t := range w.ExternalAPI.Resources() {
			if t.Kind+" "+t.ID == what && strings.Contains(t.State, state) {
				return nil
			}
		}
		return fmt.Errorf("there is no %s with %s in NATS; it has %+v", what, state, w.ExternalAPI.Resources())
	}
}

func natsEmpty(_ context.Context, w *fault.World) error {
	if all := w.ExternalAPI.Resources(); len(all) > 0 {
		return fmt.Errorf("NATS still has %+v", all)
	}
	return nil
}

// owned expects a number of things that belong to an object.
func owned(want int) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		all := slices.DeleteFunc(w.ExternalAPI.Resources(), func(t fault.Resource) bool { return t.Owner == "" })
		if len(all) != want {
			return fmt.Errorf("%d external resources have owners instead of %d: %+v", len(all), want, all)
		}
		return nil
	}
}

// refused expects an object that says that it is not as it should be, Ready or not.
func refused(obj client.Object) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		o, err := present(ctx, w, obj)
		if err != nil {
			return err
		}
		if s := o.TrimtabStatus(); !meta.IsStatusConditionTrue(s.Conditions, api.ConditionFailed) {
			return fmt.Errorf("%s is not Failed: %+v", obj.GetName(), s.Conditions)
		}
		return nil
	}
}

// readyForEarlier expects an object that is Ready for an earlier spec than the one it has.
func readyForEarlier(obj client.Object) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		o, err := present(ctx, w, obj)
		if err != nil {
			return err
		}
		c, generation := meta.FindStatusCondition(o.TrimtabStatus().Conditions, api.ConditionReady), o.(client.Object).GetGeneration()
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration >= generation {
			return fmt.Errorf("%s has generation %d and is not Ready for an earlier one: %+v", obj.GetName(), generation, c)
		}
		return nil
	}
}

// present reads an object of ours as it is.
func present(ctx context.Context, w *fault.World, obj client.Object) (api.Object, error) {
	now, err := live(ctx, w, obj)
	if err != nil {
		return nil, err
	}
	o, ok := now.(api.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no status of ours", now)
	}
	return o, nil
}

// live reads an object as it is.
func live(ctx context.Context, w *fault.World, obj client.Object) (client.Object, error) {
	now, _ := obj.DeepCopyObject().(client.Object)
	if now.GetNamespace() == "" {
		now.SetNamespace(metav1.NamespaceDefault)
	}
	return now, w.Client.Get(ctx, client.ObjectKeyFromObject(now), now)
}

// reason expects an object that is not Ready, with a reason; an empty one is any.
func reason(obj client.Object, want string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		o, err := present(ctx, w, obj)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(o.TrimtabStatus().Conditions, api.ConditionReady)
		if ready == nil || ready.Status == metav1.ConditionTrue || want != "" && ready.Reason != want {
			return fmt.Errorf("%s has Ready %+v; want it not to be, with reason %q", obj.GetName(), ready, want)
		}
		return nil
	}
}
