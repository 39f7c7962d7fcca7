package scenarios

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/fault/natsfake"
)

// racing gives a scenario races of its own: where the outcome of the usual ones rightly
// depends on when a user comes, they wait until it does not any more.
func racing(s fault.Scenario, races ...fault.Step) fault.Scenario {
	s.Races = races
	return s
}

// condition tells whether a user who looks at the cluster would act now.
type condition func(context.Context, *fault.World) (bool, error)

// when is a race of a user who looks first, and acts only if a condition holds.
func when(seen condition, race fault.Step) fault.Step {
	do := race.Do
	race.Do = func(ctx context.Context, w *fault.World) error {
		ok, err := seen(ctx, w)
		if err != nil {
			return err
		}
		if !ok { // as a race says that comes too early
			return apierrors.NewNotFound(schema.GroupResource{Resource: "what the user waits for"}, race.Name)
		}
		return do(ctx, w)
	}
	return race
}

// made holds of a Stream that has its stream, which bears its mark or is in its record as taken
// over, and of one that is gone or goes: from then on it does not matter when somebody deletes
// or pauses it. Before, a pause keeps the stream from being made or taken over at all, and what
// never was the object's does not go with it, nor is it left behind.
func made(s *v1alpha1.Stream) condition {
	return func(ctx context.Context, w *fault.World) (bool, error) {
		o, err := live(ctx, w, s)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		b, ok := w.ExternalAPI.(Bystander)
		if err != nil || !ok || !o.GetDeletionTimestamp().IsZero() {
			return ok, err
		}
		var record struct {
			Adopted string `json:"adopted"`
		}
		if text := o.GetAnnotations()[api.AnnotationExternal]; text != "" {
			if err := json.Unmarshal([]byte(text), &record); err != nil || record.Adopted != "" {
				return err == nil, err
			}
		}
		var info struct {
			Config struct {
				Metadata map[string]string `json:"metadata"`
			} `json:"config"`
		}
		err = json.Unmarshal(ask(b, "STREAM.INFO."+s.Name, ``), &info)
		return external.MarkOf(info.Config.Metadata)[external.MarkUID] == string(o.GetUID()), err
	}
}

// told holds of an object that is Ready or gone. One whose dependency goes tells what it was
// until then, if it was.
func told(obj client.Object) condition {
	return func(ctx context.Context, w *fault.World) (bool, error) {
		o, err := present(ctx, w, obj)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(o.TrimtabStatus().Conditions, api.ConditionReady), nil
	}
}

// edited is a user's change of a Stream that any moment is right for.
func edited(s *v1alpha1.Stream) fault.Step { return fault.Merge(s, `{"spec":{"maxMsgs":1000}}`) }

// pairRaces are those of a stream and its consumer.
func pairRaces() []fault.Step {
	s, c := ordersStream(), billingConsumer()
	return []fault.Step{
		fault.Delete(c), fault.Recreate(c), fault.Recreate(s),
		fault.Merge(c, `{"spec":{"maxDeliver":7}}`), edited(s), when(told(c), fault.Delete(s)),
	}
}

func orphanRaces() []fault.Step {
	s := ordersStream(api.AnnotationDeletion, "orphan")
	return []fault.Step{
		when(made(s), fault.Delete(s)), when(made(s), fault.Recreate(s)), edited(s),
		fault.Merge(s, annotation(api.AnnotationAdoption, "always")),
	}
}

func adoptionRaces() []fault.Step {
	s := ordersStream()
	return []fault.Step{
		when(made(s), fault.Delete(s)), when(made(s), fault.Recreate(s)), edited(s),
		entrust("default/orders", fault.Merge(s, annotation(api.AnnotationAdoption, "always"))),
	}
}

func pauseRaces() []fault.Step {
	s := ordersStream()
	return []fault.Step{
		fault.Delete(s), fault.Recreate(s), edited(s), resume(s),
		when(made(s), fault.Merge(s, annotation(api.AnnotationPaused, "true"))),
	}
}

// accessRaces: the operator may never delete, so whoever deletes the object leaves the stream
// to nobody.
func accessRaces() []fault.Step {
	s := ordersStream(api.AnnotationAccess, "read-only")
	return []fault.Step{
		when(made(s), entrust("", fault.Delete(s))), when(made(s), entrust("", fault.Recreate(s))), edited(s),
		fault.Merge(s, annotation(api.AnnotationAccess, "c")), fault.Merge(s, annotation(api.AnnotationAccess, "cu")),
	}
}

// deniedRaces: an object does not go while nobody can tell whether it has a stream, so who
// deletes it switches JetStream on.
func deniedRaces() []fault.Step {
	s := ordersStream()
	return []fault.Step{switchedOn(fault.Delete(s)), switchedOn(fault.Recreate(s)), edited(s), fault.Merge(s, annotation(api.AnnotationReconcile, "now"))}
}

func switchedOn(step fault.Step) fault.Step {
	return onServer(step, func(s *natsfake.Server) { s.Enable(true) })
}

// twinRaces: that the owner of the stream goes alone is not among them, as the other takes its
// place when it looks the next time, in ten minutes, and the cluster is not at rest till then.
func twinRaces() []fault.Step {
	a, b := twinA(), twinB()
	both, alone := fault.Delete(a).Named("delete a and b"), fault.Delete(b)
	deleteA := both.Do
	both.Do = func(ctx context.Context, w *fault.World) error {
		if err := deleteA(ctx, w); err != nil {
			return err
		}
		return alone.Do(ctx, w)
	}
	return []fault.Step{both, fault.Recreate(a), edited(a), alone, fault.Recreate(b), edited(b)}
}
