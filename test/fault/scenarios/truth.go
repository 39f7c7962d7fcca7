package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// The stories here are about what status says, and about who is believed.

// ignored is a stream of which NATS keeps settings that the spec wants otherwise: a sealed one
// denies deletes. That is shown, nothing is done about it, and the stream is Ready.
func ignored() []fault.Step {
	s := stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>"}, Sealed: new(true), DenyDelete: new(false)})
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady).Expecting(says(s, "not enforced: spec.denyDelete is true")).
			Expecting(natsHas("stream orders", `"sealed":true`)),
		fault.Merge(s, `{"spec":{"denyPurge":false}}`).Becomes(s, api.ConditionReady).Expecting(says(s, "spec.denyPurge is true")),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// copying is a stream that mirrors another one before that is there and afterwards, and a stream
// that has the other as a source.
func copying() []fault.Step {
	mirror, mixed := mirrorOfOrders(), stream("mixed", v1alpha1.StreamSpec{Sources: []v1alpha1.StreamSource{{Name: "orders"}}})
	made := fault.Change("somebody makes orders", func(b Bystander) error {
		return asked(b, "STREAM.CREATE.orders", `{"name":"orders","subjects":["orders.>"]}`)
	})
	return []fault.Step{
		fault.Create(mirror).Expecting(reason(mirror, "MirrorFails")),
		made.Becomes(mirror, api.ConditionReady),
		fault.Create(mixed).Becomes(mixed, api.ConditionReady),
		together("delete both", fault.Delete(mixed), fault.Delete(mirror)).Gone(mirror).Gone(mixed).Expecting(resources(1)),
	}
}

func mirrorOfOrders() *v1alpha1.Stream {
	return stream("mirror", v1alpha1.StreamSpec{Mirror: &v1alpha1.StreamSource{Name: "orders"}})
}

// together is a step in which several things happen at once. What they expect is left out.
func together(name string, steps ...fault.Step) fault.Step {
	return fault.Step{Name: name, Do: func(ctx context.Context, w *fault.World) error {
		for _, s := range steps {
			if err := s.Do(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}}
}

// forged is a consumer of a stream that is not ours, and somebody who says that it is Ready. NATS
// would take the consumer.
func forged() []fault.Step {
	s, c := ordersStream(), billingConsumer()
	waits := func(step fault.Step) fault.Step {
		return step.Expecting(reason(c, "DependenciesNotReady")).Expecting(natsHas("stream orders", `theirs.>`)).Expecting(resources(1))
	}
	return []fault.Step{
		waits(together("create orders and billing", fault.Create(s), fault.Create(c))).Expecting(reason(s, "NotOurs")),
		// Without the request to look the forgery would stay for minutes, and be seen no more often.
		waits(together("somebody writes that orders is Ready", saidReady(s), fault.Merge(s, annotation(api.AnnotationReconcile, "now")))).
			Expecting(reason(s, "NotOurs")),
		together("delete both", fault.Delete(c), fault.Delete(s)).Gone(c).Gone(s).Expecting(natsHas("stream orders", `theirs.>`)),
	}
}

// saidReady is somebody who writes into the status of an object that it is Ready, as its
// operator would.
func saidReady(obj client.Object) fault.Step {
	return fault.Step{Do: func(ctx context.Context, w *fault.World) error {
		now, err := live(ctx, w, obj)
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{
			"observedGeneration": now.GetGeneration(), "state": "Succeeded", "message": "somebody says so",
			"conditions": []metav1.Condition{{
				Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: "Available", Message: "somebody says so",
				ObservedGeneration: now.GetGeneration(), LastTransitionTime: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
			}},
		}})
		if err != nil {
			return err
		}
		return w.Client.Status().Patch(ctx, now, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody"))
	}}
}

// says expects an object's message to hold a text.
func says(obj client.Object, text string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		o, err := present(ctx, w, obj)
		if err != nil {
			return err
		}
		if got := o.TrimtabStatus().Message; !strings.Contains(got, text) {
			return fmt.Errorf("the message of %s is %q; want it to hold %q", obj.GetName(), got, text)
		}
		return nil
	}
}

// resources expects a number of external resources.
func resources(want int) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		if all := w.ExternalAPI.Resources(); len(all) != want {
			return fmt.Errorf("%d external resources exist instead of %d: %+v", len(all), want, all)
		}
		return nil
	}
}
