package crash

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/internal/opertest"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/testenv"
)

const (
	// bystander is the connection that looks at NATS and makes drift.
	bystander = "bystander"
	// driftInterval is how often the operator under test compares.
	driftInterval = 150 * time.Millisecond
)

// world is one run: a namespace, a NATS server, and an operator between them.
type world struct {
	t         *testing.T
	admin     client.WithWatch
	namespace string
	nats      *natsserver.Server
	js        jetstream.JetStream
	gate      *gate
	operator  *lives
	stream    *v1alpha1.Stream
	consumer  *v1alpha1.Consumer
}

func newWorld(t *testing.T, cfg *rest.Config, binary opertest.Binary, at point) *world {
	t.Helper()
	w := &world{t: t, admin: testenv.Client(t, cfg, v1alpha1.AddToScheme), namespace: testenv.Namespace(t, cfg)}
	w.gate = &gate{at: at, kill: func() { w.operator.kill() }}
	w.startNATS()
	user := testenv.User(t, cfg, rules(t)...)
	kubeconfig := opertest.Kubeconfig(t, &rest.Config{Host: kubeProxy(t, user, w.gate)}, w.namespace)
	w.operator = startOperator(t, binary, kubeconfig, "--watch-namespaces", w.namespace, "--leader-elect=false",
		"--nats-url", w.nats.URL(), "--drift-interval", driftInterval.String())
	named := metav1.ObjectMeta{Namespace: w.namespace, Name: "orders"}
	w.stream = &v1alpha1.Stream{ObjectMeta: named, Spec: v1alpha1.StreamSpec{Subjects: []string{"orders.>"}}}
	named.Name = "billing"
	w.consumer = &v1alpha1.Consumer{ObjectMeta: named, Spec: v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: "orders"}}}
	return w
}

// rules are what the operator may do by its own manifests.
func rules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	objects, err := operator.Manifests(nats.Operator(), operator.ManifestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		if role, ok := obj.(*rbacv1.ClusterRole); ok {
			return role.Rules
		}
	}
	t.Fatal("the manifests have no ClusterRole")
	return nil
}

// startNATS starts a server whose clients' writes pass through the gate.
func (w *world) startNATS() {
	w.t.Helper()
	var numbers sync.Map // of writes whose answers are awaited, by what they are
	server, err := natsserver.Start(natsserver.Options{
		Dir: w.t.TempDir(),
		Received: func(c natsserver.Call) bool {
			if c.Client == bystander || !c.Mutating() {
				return true
			}
			n, pass := w.gate.enter("NATS " + c.String())
			numbers.Store(c.Op+c.Stream+c.Consumer, n)
			return pass
		},
		Answered: func(c natsserver.Call) {
			if n, ok := numbers.LoadAndDelete(c.Op + c.Stream + c.Consumer); ok && c.Client != bystander {
				number, _ := n.(int)
				w.gate.leave(number)
			}
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(server.Stop)
	conn, err := server.Connect(bystander)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(conn.Close)
	if w.js, err = jetstream.New(conn); err != nil {
		w.t.Fatal(err)
	}
	w.nats = server
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.admin.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) merge(obj client.Object, body string) {
	w.t.Helper()
	if err := w.admin.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// waiting waits until the consumer says that it waits for its stream.
func (w *world) waiting() {
	w.t.Helper()
	w.consumer = testenv.Wait(w.t, w.admin, w.consumer, "the consumer to wait", func(c *v1alpha1.Consumer) bool {
		return c.Status.State == "Pending" && !meta.IsStatusConditionTrue(c.Status.Conditions, api.ConditionReady)
	})
}

// ready waits until both are Ready at their generations and the consumer does not wait for
// its stream.
func (w *world) ready(stream, consumer int64) {
	w.t.Helper()
	is := func(s *api.Status, generation int64) bool {
		return s.AppliedGeneration == generation && s.ObservedGeneration == generation &&
			s.State == "Succeeded" && meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady)
	}
	w.stream = testenv.Wait(w.t, w.admin, w.stream, "the stream to be Ready",
		func(s *v1alpha1.Stream) bool { return is(s.TrimtabStatus(), stream) })
	w.consumer = testenv.Wait(w.t, w.admin, w.consumer, "the consumer to be Ready",
		func(c *v1alpha1.Consumer) bool { return is(c.TrimtabStatus(), consumer) })
	w.silence()
}

// limitStream changes the stream behind the operator's back.
func (w *world) limitStream(messages int64) {
	w.t.Helper()
	info, err := w.js.Stream(w.t.Context(), "orders")
	if err != nil {
		w.t.Fatal(err)
	}
	changed := info.CachedInfo().Config
	changed.MaxMsgs = messages
	if _, err := w.js.UpdateStream(w.t.Context(), changed); err != nil {
		w.t.Fatal(err)
	}
}

// deleteConsumer deletes the consumer behind the operator's back.
func (w *world) deleteConsumer() {
	w.t.Helper()
	if err := w.js.DeleteConsumer(w.t.Context(), "orders", "billing"); err != nil {
		w.t.Fatal(err)
	}
}

// delete deletes an object and waits until it is gone.
func (w *world) delete(obj client.Object) {
	w.t.Helper()
	if err := w.admin.Delete(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
	testenv.Gone(w.t, w.admin, obj, "to be gone")
}

// empty asserts that nothing is left in NATS.
func (w *world) empty() {
	w.t.Helper()
	names := w.js.StreamNames(w.t.Context())
	for name := range names.Name() {
		w.t.Errorf("stream %s is left in NATS", name)
	}
	if err := names.Err(); err != nil {
		w.t.Error(err)
	}
}

// silence waits until nothing is written for some drift intervals. An operator that never
// falls silent fails the test.
func (w *world) silence() {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		before, _ := w.gate.seen()
		<-time.After(3 * driftInterval) // a silence can only be listened to
		after, _ := w.gate.seen()
		if len(after) == len(before) && w.operator.alive() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no silence within 30 s; written last: %v", after[len(before):])
		}
	}
}

// until asks again and again; what NATS holds cannot be watched.
func (w *world) until(why string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			w.t.Fatalf("waited 30 s for %s; NATS has %+v", why, w.state())
		}
	}
}

// state is what is compared between runs.
type state struct {
	Streams    []string
	MaxMsgs    int64
	Consumers  []string
	MaxDeliver int
	// Stream and Consumer are the states of the objects, without what differs from run to
	// run.
	Stream, Consumer string
}

func (w *world) state() state {
	w.t.Helper()
	var s state
	streams := w.js.ListStreams(w.t.Context())
	for info := range streams.Info() {
		s.Streams = append(s.Streams, info.Config.Name)
		s.MaxMsgs = info.Config.MaxMsgs
		stream, err := w.js.Stream(w.t.Context(), info.Config.Name)
		if err != nil {
			continue // gone meanwhile
		}
		consumers := stream.ListConsumers(w.t.Context())
		for c := range consumers.Info() {
			s.Consumers = append(s.Consumers, c.Name)
			s.MaxDeliver = c.Config.MaxDeliver
		}
	}
	s.Stream = summary(w.t, w.stream.TrimtabExternal(), w.stream.Finalizers)
	s.Consumer = summary(w.t, w.consumer.TrimtabExternal(), w.consumer.Finalizers)
	return s
}

// summary is what holds of an object, as JSON. What once held and no longer does depends
// on what happened on the way.
func summary(t *testing.T, s *api.ExternalStatus, finalizers []string) string {
	t.Helper()
	holds := map[string]string{}
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			holds[c.Type] = c.Reason
		}
	}
	seen := api.ExternalObservation{}
	if s.External != nil {
		seen = *s.External
	}
	// A process that is killed between a loss and its marker leaves the next one unable to
	// tell a lost thing from one that was never made: the number stays.
	seen.Incarnation = 0
	b, err := json.Marshal(map[string]any{
		"state": s.State, "external": seen, "holds": holds, "finalizers": finalizers,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
