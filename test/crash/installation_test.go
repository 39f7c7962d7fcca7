package crash

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
	"github.com/trimtab-dev/trimtab/testenv"
)

const (
	// bystander is the connection that looks at NATS and makes drift.
	bystander = "bystander"
	// driftInterval is how often the operator under test compares.
	driftInterval = 150 * time.Millisecond
)

// installation is the setting of one run: a namespace, a NATS server, and an operator between them.
type installation struct {
	t         *testing.T
	admin     client.WithWatch
	namespace string
	nats      *natsserver.Server
	outside   realNATS
	gate      *gate
	operator  *lives
	story     scenarios.Story
}

func newInstallation(t *testing.T, cfg *rest.Config, binary operatortest.Binary, at point) *installation {
	t.Helper()
	w := &installation{t: t, admin: testenv.Client(t, cfg, v1alpha1.AddToScheme), namespace: testenv.Namespace(t, cfg)}
	w.gate = &gate{at: at, kill: func() { w.operator.kill() }}
	w.startNATS()
	user := testenv.User(t, cfg, rules(t)...)
	kubeconfig := operatortest.Kubeconfig(t, &rest.Config{Host: kubeProxy(t, user, w.gate)}, w.namespace)
	w.operator = startOperator(t, binary, kubeconfig, "--watch-namespaces", w.namespace, "--leader-elect=false",
		"--nats-url", w.nats.URL(), "--drift-interval", driftInterval.String())
	w.story = scenarios.Life(w.namespace)
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
func (w *installation) startNATS() {
	w.t.Helper()
	var numbers sync.Map // of the operator's writes whose answers are awaited, by what they are
	ours := func(c natsserver.Call) bool { return c.Client != bystander && c.Mutating() }
	server, err := natsserver.Start(natsserver.Options{
		Dir: w.t.TempDir(),
		Received: func(c natsserver.Call) bool {
			if !ours(c) {
				return true
			}
			n, pass := w.gate.enter("NATS " + c.String())
			numbers.Store(c.Op+c.Stream+c.Consumer, n)
			return pass
		},
		Answered: func(c natsserver.Call) {
			if !ours(c) {
				return // the bystander's answer may come while the operator's is awaited
			}
			if n, ok := numbers.LoadAndDelete(c.Op + c.Stream + c.Consumer); ok {
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
	w.outside = realNATS{t: w.t, conn: conn}
	w.nats = server
}

// play plays a step and waits until what it wants holds and nothing is written.
func (w *installation) play(step fault.Step) {
	w.t.Helper()
	world := &fault.World{Client: w.admin, ExternalAPI: w.outside}
	if err := step.Do(w.t.Context(), world); err != nil {
		w.t.Fatalf("%s: %v", step.Name, err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(poll.Patience)
	for {
		err := step.Expect(w.t.Context(), world)
		if err == nil {
			break
		}
		select {
		case <-tick.C: // what NATS holds cannot be watched
		case <-deadline:
			w.t.Fatalf("waited two minutes after %q: %v", step.Name, err)
		}
	}
	w.silence()
	if err := step.Expect(w.t.Context(), world); err != nil {
		w.t.Fatalf("it did not last after %q: %v", step.Name, err)
	}
}

// silence waits until nothing is written for some drift intervals. An operator that never
// falls silent fails the test.
func (w *installation) silence() {
	w.t.Helper()
	deadline := time.Now().Add(poll.Patience)
	for {
		before, _ := w.gate.seen()
		<-time.After(3 * driftInterval) // a silence can only be listened to
		after, _ := w.gate.seen()
		if len(after) == len(before) && w.operator.alive() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("no silence within two minutes; written last: %v", after[len(before):])
		}
	}
}

// state is what is compared between runs.
type state struct {
	Resources []fault.Resource
	// Stream and Consumer are the states of the objects, without what differs from run to
	// run.
	Stream, Consumer string
}

func (w *installation) state() state {
	w.t.Helper()
	stream, consumer := w.story.Stream.DeepCopy(), w.story.Consumer.DeepCopy()
	for _, obj := range []client.Object{stream, consumer} {
		if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	all := w.outside.Resources()
	for i := range all {
		if all[i].Owner == "" {
			w.t.Errorf("%s %s bears no ownership mark", all[i].Kind, all[i].ID)
		}
		all[i].Owner = "" // a UID
	}
	return state{
		Resources: all,
		Stream:    summary(w.t, stream.TrimtabExternal(), stream.Finalizers),
		Consumer:  summary(w.t, consumer.TrimtabExternal(), consumer.Finalizers),
	}
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
