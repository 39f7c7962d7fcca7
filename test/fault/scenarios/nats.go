package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/fault/natsfake"
)

// All returns every scenario that needs no disk.
func All() []fault.Scenario {
	return slices.Concat(NATS(), Loop(), Cloud(), Assigned(), Operated(), Verified(), Answers(), Component(), Hooks(), Orders(), Handover(), Nodes(), Kept(), Outages())
}

// drift is how long it takes until a change behind the operator's back is certainly noticed:
// the operator compares every ten minutes, give or take one.
const drift = 12 * time.Minute

// NATS returns the scenarios of the NATS sample.
func NATS() []fault.Scenario {
	return []fault.Scenario{
		racing(natsScenario("nats-life", Life("").Steps), pairRaces()...),
		natsScenario("nats-bucket", bucketLife()),
		racing(natsScenario("nats-lost", lost()), pairRaces()...),
		racing(natsScenario("nats-orphan", orphan()), orphanRaces()...),
		racing(withStream(natsScenario("nats-adoption", adoption())), adoptionRaces()...),
		racing(natsScenario("nats-pause", pause()), pauseRaces()...),
		natsScenario("nats-invalid", invalid()),
		withStream(natsScenario("nats-occupied", occupied())),
		racing(natsScenario("nats-access", access()), accessRaces()...),
		racing(natsScenario("nats-recreate", recreate()), pairRaces()...),
		retrying(racing(natsScenario("nats-denied", denied()), deniedRaces()...)),
		showingLate(natsScenario("nats-late", late())),
		racing(natsScenario("nats-twins", twins()), twinRaces()...),
		natsScenario("nats-ignored", ignored()),
		racing(restless(retrying(natsScenario("nats-copying", copying()))), fault.Recreate(mirrorOfOrders())),
		racing(withStream(natsScenario("nats-forged", forged())), fault.Delete(billingConsumer())),
	}
}

// natsSimulated is read once for all its scenarios: its manifests take longer than most schedules.
var natsSimulated = sync.OnceValue(func() fault.Operator {
	o := simulated(natsOperator)
	o.Justified = append(o.Justified, "list keyvalues.nats.trimtab.dev") // after a watch of them failed, which the short form does not play
	return o
})

// natsScenario is the sample's operator on a server in memory.
func natsScenario(name string, steps []fault.Step) fault.Scenario {
	return fault.Scenario{
		Name: name, Operator: natsSimulated(), Steps: steps,
		ExternalAPI: func() fault.ExternalAPI { return natsfake.New() },
		// Shorter than the time until the next look, so that what is put right is put right
		// because of the fault, not by chance.
		Patience: 5 * time.Minute,
		Lag:      behind,
		Reads:    reads,
	}
}

// behind is how long what NATS shows may be behind: a little less than the sample allows for.
const behind = 900 * time.Millisecond

// reads is how often a cluster at rest may look at NATS in an hour: for each of two objects
// every ten minutes, give or take one, and once more.
const reads = 2 * 7

// withStream lets somebody have made a stream before.
func withStream(s fault.Scenario) fault.Scenario {
	s.ExternalAPI = func() fault.ExternalAPI {
		server := natsfake.New()
		ask(server, "STREAM.CREATE.orders", `{"name":"orders","subjects":["theirs.>"]}`)
		return server
	}
	return s
}

// showingLate lets NATS deny what was made a moment ago.
func showingLate(s fault.Scenario) fault.Scenario {
	s.ExternalAPI = func() fault.ExternalAPI {
		server := natsfake.New()
		server.ShowLate(behind)
		return server
	}
	return s
}

// retrying is for a cluster that does not come to rest until somebody helps.
func retrying(s fault.Scenario) fault.Scenario {
	s.Reads = 0
	return s
}

// restless is for a cluster in which something is observed every few seconds until somebody helps.
// It is called quiet earlier, so that there are fewer calls to disturb.
func restless(s fault.Scenario) fault.Scenario {
	s.Quiet = 8 * time.Second
	return s
}

// carrier carries requests to the server of the sandbox, and words failures as NATS does.
func carrier(env *fault.Env) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, subject string, body []byte) ([]byte, error) {
		call := fault.Write[*natsfake.Server, []byte]
		if natsfake.IsRead(subject) {
			call = fault.Read[*natsfake.Server, []byte]
		}
		answer, err := call(ctx, env, natsfake.What(subject), func(s *natsfake.Server) ([]byte, error) {
			return s.Request(subject, body), nil
		})
		switch {
		case errors.Is(err, fault.ErrThrottled):
			return natsfake.Refusal(429, 0, "too many requests"), nil
		case errors.Is(err, fault.ErrUnavailable):
			return natsfake.Refusal(503, 10008, "JetStream system temporarily unavailable"), nil
		case errors.Is(err, fault.ErrNoAnswer):
			return nil, context.DeadlineExceeded
		}
		return answer, err
	}
}

func stream(name string, spec v1alpha1.StreamSpec, annotations ...string) *v1alpha1.Stream {
	return &v1alpha1.Stream{ObjectMeta: named(name, annotations), Spec: spec}
}

// named is the metadata of an object with annotations: key, value, key, value.
func named(name string, annotations []string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name}
	for i := 0; i+1 < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&m, annotations[i], annotations[i+1])
	}
	return m
}

func ordersStream(annotations ...string) *v1alpha1.Stream {
	return stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>"}}, annotations...)
}

func billingConsumer() *v1alpha1.Consumer {
	return &v1alpha1.Consumer{
		ObjectMeta: named("billing", nil), Spec: v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: "orders"}},
	}
}

// bucketLife is the life of a bucket.
func bucketLife() []fault.Step {
	b := &v1alpha1.KeyValue{ObjectMeta: named("settings", nil), Spec: v1alpha1.KeyValueSpec{History: new(int64(3))}}
	return []fault.Step{
		fault.Create(b).Becomes(b, api.ConditionReady),
		fault.Merge(b, `{"spec":{"history":5}}`).Becomes(b, api.ConditionReady).Expecting(natsHas("stream KV_settings", `"max_msgs_per_subject":5`)),
		noticed(fault.Change("somebody deletes the bucket", func(s Bystander) error {
			return asked(s, "STREAM.DELETE.KV_settings", ``)
		})).Becomes(b, api.ConditionReady).Expecting(natsHas("stream KV_settings", `"max_msgs_per_subject":5`)),
		fault.Delete(b).Gone(b).Expecting(natsEmpty),
	}
}

// lost is a stream that somebody deletes with all that is in it.
func lost() []fault.Step {
	s, c := ordersStream(), billingConsumer()
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady),
		fault.Create(c).Becomes(c, api.ConditionReady),
		noticed(fault.Change("somebody deletes the stream", func(s Bystander) error {
			return asked(s, "STREAM.DELETE.orders", ``)
		})).Becomes(s, api.ConditionReady).Becomes(c, api.ConditionReady).Expecting(natsHas("consumer orders/billing", ``)),
		fault.Delete(s).Gone(s),
		fault.Create(s).Named("create orders again").Becomes(s, api.ConditionReady).Becomes(c, api.ConditionReady).
			Expecting(natsHas("consumer orders/billing", ``)),
		fault.Delete(c).Gone(c),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// orphan is a stream that outlives its object, and is taken over by the next one.
func orphan() []fault.Step {
	s := ordersStream(api.AnnotationDeletion, "orphan")
	next := ordersStream(api.AnnotationAdoption, "always")
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady),
		fault.Delete(s).Gone(s).Expecting(natsHas("stream orders", `orders.>`)).Expecting(owned(0)),
		entrust("default/orders", fault.Create(next).Named("create another for the same stream")).Becomes(next, api.ConditionReady).Expecting(natsHas("stream orders", `orders.>`)),
		fault.Delete(next).Named("delete the other").Gone(next).Expecting(natsEmpty),
	}
}

// adoption is a stream that was there before.
func adoption() []fault.Step {
	s := ordersStream()
	return []fault.Step{
		fault.Create(s).Expecting(reason(s, "NotOurs")).Expecting(natsHas("stream orders", `theirs.>`)),
		entrust("default/orders", fault.Merge(s, annotation(api.AnnotationAdoption, "always"))).Becomes(s, api.ConditionReady).Expecting(natsHas("stream orders", `orders.>`)),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// occupied is a stream that was there before, and stays.
func occupied() []fault.Step {
	s := ordersStream()
	theirs := natsHas("stream orders", `theirs.>`)
	return []fault.Step{
		fault.Create(s).Expecting(reason(s, "NotOurs")).Expecting(theirs),
		fault.Merge(s, `{"spec":{"maxMsgs":5}}`).Expecting(reason(s, "NotOurs")).Expecting(theirs),
		fault.Delete(s).Gone(s).Expecting(theirs),
	}
}

// pause is a stream whose object is paused while things happen.
func pause() []fault.Step {
	s := ordersStream()
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady),
		fault.Merge(s, annotation(api.AnnotationPaused, "true")).Becomes(s, api.ConditionPaused),
		fault.Merge(s, `{"spec":{"maxMsgs":5}}`).Expecting(natsHas("stream orders", `"max_msgs":-1`)).Expecting(readyForEarlier(s)),
		resume(s).Becomes(s, api.ConditionReady).Expecting(natsHas("stream orders", `"max_msgs":5`)),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

func resume(s *v1alpha1.Stream) fault.Step {
	return fault.Merge(s, `{"metadata":{"annotations":{"`+api.AnnotationPaused+`":null}}}`).Named("resume orders")
}

// invalid is a spec that NATS refuses, corrected; and a change that cannot be made, taken back.
func invalid() []fault.Step {
	s := stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>", "orders.new"}})
	return []fault.Step{
		fault.Create(s).Expecting(reason(s, "")).Expecting(natsEmpty),
		fault.Merge(s, `{"spec":{"subjects":["orders.>"]}}`).Becomes(s, api.ConditionReady),
		fault.Merge(s, `{"spec":{"storage":"memory"}}`).Expecting(natsHas("stream orders", `"storage":"file"`)).Expecting(readyForEarlier(s)),
		fault.Merge(s, `{"spec":{"storage":"file"}}`).Becomes(s, api.ConditionReady),
		fault.Merge(s, `{"spec":{"subjects":["orders.>","orders.new"]}}`).Expecting(refused(s)).Expecting(readyForEarlier(s)),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// access is a stream that may be read first, then created, then changed, and not deleted.
func access() []fault.Step {
	s := ordersStream(api.AnnotationAccess, "read-only")
	return []fault.Step{
		fault.Create(s).Expecting(reason(s, "")).Expecting(natsEmpty),
		fault.Merge(s, annotation(api.AnnotationAccess, "c")).Becomes(s, api.ConditionReady),
		fault.Merge(s, `{"spec":{"maxMsgs":5}}`).Expecting(natsHas("stream orders", `"max_msgs":-1`)).Expecting(readyForEarlier(s)),
		fault.Merge(s, annotation(api.AnnotationAccess, "cu")).Becomes(s, api.ConditionReady).Expecting(natsHas("stream orders", `"max_msgs":5`)),
		entrust("", fault.Delete(s).Gone(s)).Expecting(natsHas("stream orders", `"max_msgs":5`)),
	}
}

// recreate is a change that needs a new stream.
func recreate() []fault.Step {
	s := stream("orders", v1alpha1.StreamSpec{Subjects: []string{"orders.>"}, Recreate: v1alpha1.RecreateAllowed})
	c := billingConsumer()
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady),
		fault.Create(c).Becomes(c, api.ConditionReady),
		fault.Merge(s, `{"spec":{"storage":"memory"}}`).Becomes(s, api.ConditionReady).Becomes(c, api.ConditionReady).
			Expecting(natsHas("stream orders", `"storage":"memory"`)).Expecting(natsHas("consumer orders/billing", ``)),
		fault.Delete(c).Gone(c),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// denied is an account without JetStream, until somebody gives it one.
func denied() []fault.Step {
	s := ordersStream()
	allow := func(allowed bool) func(*natsfake.Server) error {
		return func(n *natsfake.Server) error { n.Enable(allowed); return nil }
	}
	return []fault.Step{
		fault.Change("JetStream is switched off", allow(false)),
		fault.Create(s).Expecting(reason(s, "")).Expecting(natsEmpty),
		noticed(fault.Change("JetStream is switched on", allow(true))).Becomes(s, api.ConditionReady),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// late is a stream that does not show at once. Its races are those that matter: who deletes it
// meanwhile deletes what cannot be seen.
func late() []fault.Step {
	s := ordersStream()
	return []fault.Step{
		fault.Create(s).Becomes(s, api.ConditionReady).Expecting(natsHas("stream orders", `orders.>`)),
		fault.Delete(s).Gone(s).Expecting(natsEmpty),
	}
}

// entrust lets the stream be somebody's, or nobody's, from a step on.
func entrust(owner string, step fault.Step) fault.Step {
	return onServer(step, func(s *natsfake.Server) { s.Entrust("orders", owner) })
}

// onServer does something to the server together with a step.
func onServer(step fault.Step, act func(*natsfake.Server)) fault.Step {
	do := step.Do
	step.Do = func(ctx context.Context, w *fault.World) error {
		s, ok := w.ExternalAPI.(*natsfake.Server)
		if !ok {
			return fmt.Errorf("the external API is a %T", w.ExternalAPI)
		}
		act(s)
		return do(ctx, w)
	}
	return step
}

// twins are two objects that want one stream.
func twins() []fault.Step {
	a, b := twinA(), twinB()
	ofA := natsHas("stream orders", `orders.>`)
	return []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady),
		fault.Create(b).Expecting(reason(b, "NotOurs")).Expecting(ofA),
		fault.Delete(b).Gone(b).Expecting(ofA),
		fault.Delete(a).Gone(a).Expecting(natsEmpty),
	}
}

func twinA() *v1alpha1.Stream {
	return stream("a", v1alpha1.StreamSpec{Name: "orders", Subjects: []string{"orders.>"}})
}

func twinB() *v1alpha1.Stream {
	return stream("b", v1alpha1.StreamSpec{Name: "orders", Subjects: []string{"others.>"}}, api.AnnotationAdoption, "always")
}

func annotation(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
}

// noticed lets time pass after a step, until the operator has looked.
func noticed(s fault.Step) fault.Step {
	s.Wait = drift
	return s
}
