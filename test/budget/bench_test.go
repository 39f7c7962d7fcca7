package budget

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	_ "github.com/trimtab-dev/trimtab/samples/nats" // so that a cached result ends when the operator changes
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/internal/audit"
	"github.com/trimtab-dev/trimtab/testenv"
)

// operatorPackage is the operator as its users run it.
const operatorPackage = "github.com/trimtab-dev/trimtab/samples/nats/cmd/nats-operator"

// bench is a control plane that logs what it is asked, with the operator installed.
type bench struct {
	cfg     *rest.Config
	audit   *audit.Log
	binary  operatortest.Binary
	account operatortest.Account
}

func newBench(t *testing.T) *bench {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Binary: binary, AuditLog: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	b := &bench{cfg: cluster.Config, audit: audit.Open(t, log), binary: operatortest.Build(t, operatorPackage)}
	b.account = b.binary.Install(t, b.cfg, testenv.Namespace(t, b.cfg))
	return b
}

// natsTest is an operator with a namespace and a NATS server.
type natsTest struct {
	*bench

	t         *testing.T
	client    client.WithWatch
	namespace string
	nats      *natsserver.Server
	flags     []string
	operator  *operatortest.Process
}

func (b *bench) newNATSTest(t *testing.T, flags ...string) *natsTest {
	t.Helper()
	server, err := natsserver.Start(natsserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	nt := &natsTest{
		bench: b, t: t, client: testenv.Client(t, b.cfg, v1alpha1.AddToScheme), namespace: testenv.Namespace(t, b.cfg),
		nats: server, flags: append(flags, "--nats-url", server.URL()),
	}
	nt.start()
	return nt
}

// start runs the operator until its caches are filled and it leads.
func (nt *natsTest) start() {
	nt.t.Helper()
	nt.operator = nt.binary.Start(nt.t, nt.account, nt.flags...)
	nt.operator.Ready()
}

// mark is a moment in both logs.
type mark struct{ kubernetes, nats int }

func (nt *natsTest) mark() mark {
	nt.t.Helper()
	return mark{nt.audit.Fence(nt.t, nt.client), len(nt.nats.Calls())}
}

// cost is what the operator asked of both sides.
type cost struct {
	kubernetes audit.Requests
	calls      []natsserver.Call
}

// cost is that of the time between two marks.
func (nt *natsTest) cost(from, to mark) cost {
	return cost{
		kubernetes: nt.audit.Between(from.kubernetes, to.kubernetes, nt.account.User),
		calls:      nt.nats.Calls()[from.nats:to.nats],
	}
}

// of is the part that a Stream or a Consumer accounts for, whose name in NATS is its own.
func (c cost) of(resource, name string) cost {
	var part cost
	for _, r := range c.kubernetes {
		if r.Object.Resource == resource && r.Object.Name == name {
			part.kubernetes = append(part.kubernetes, r)
		}
	}
	for _, call := range c.calls {
		if resource == "consumers" && call.Consumer == name || resource == "streams" && call.Consumer == "" && call.Stream == name {
			part.calls = append(part.calls, call)
		}
	}
	return part
}

// sum is what is counted of a cost.
type sum struct {
	Writes, Reads  int // Kubernetes
	Changes, Looks int // NATS
}

func (c cost) sum() sum {
	s := sum{Writes: len(c.kubernetes.Of(audit.Write)), Reads: len(c.kubernetes.Of(audit.Read))}
	for _, call := range c.calls {
		if call.Mutating() {
			s.Changes++
		} else {
			s.Looks++
		}
	}
	return s
}

// String is all of it, for people.
func (c cost) String() string {
	text := fmt.Sprintf("Kubernetes: %s%s\nNATS:", c.kubernetes.Counts(), c.kubernetes.Of(audit.Write, audit.Read, audit.Review))
	for _, call := range c.calls {
		text += "\n  " + call.String()
	}
	return text
}

// is asserts what a cost is, to the request.
func (c cost) is(t *testing.T, what string, want sum) {
	t.Helper()
	got := c.sum()
	t.Logf("%s: %+v", what, got)
	if got != want {
		t.Errorf("%s costs %+v; want %+v\n%s", what, got, want, c)
	}
}

// atMost is [cost.is] where less happens, too.
func (c cost) atMost(t *testing.T, what string, most sum) {
	t.Helper()
	got := c.sum()
	t.Logf("%s: %+v", what, got)
	if got.Writes > most.Writes || got.Reads > most.Reads || got.Changes > most.Changes || got.Looks > most.Looks {
		t.Errorf("%s costs %+v; want at most %+v\n%s", what, got, most, c)
	}
}

func (nt *natsTest) create(objects ...client.Object) {
	nt.t.Helper()
	for _, obj := range objects {
		if err := nt.client.Create(nt.t.Context(), obj); err != nil {
			nt.t.Fatal(err)
		}
	}
}

func (nt *natsTest) merge(obj client.Object, body string) {
	nt.t.Helper()
	if err := nt.client.Patch(nt.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		nt.t.Fatal(err)
	}
}

// delete deletes an object and waits until it is gone.
func (nt *natsTest) delete(obj client.Object) {
	nt.t.Helper()
	if err := nt.client.Delete(nt.t.Context(), obj); err != nil {
		nt.t.Fatal(err)
	}
	testenv.Gone(nt.t, nt.client, obj, "the object to be gone")
}

// object is any kind of the operator's.
type object interface {
	client.Object
	api.Object
}

// ready waits until an object is Ready as it is asked for now.
func ready[T object](nt *natsTest, obj T) {
	nt.t.Helper()
	generation := obj.GetGeneration()
	testenv.Wait(nt.t, nt.client, obj, "the object to be Ready", func(obj T) bool {
		s := obj.TrimtabStatus()
		return s.AppliedGeneration == generation && meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady)
	})
}

func (nt *natsTest) stream(name string) *v1alpha1.Stream {
	return &v1alpha1.Stream{
		ObjectMeta: metav1.ObjectMeta{Namespace: nt.namespace, Name: name},
		Spec:       v1alpha1.StreamSpec{Subjects: []string{name + ".>"}},
	}
}

func (nt *natsTest) consumer(name, stream string) *v1alpha1.Consumer {
	return &v1alpha1.Consumer{
		ObjectMeta: metav1.ObjectMeta{Namespace: nt.namespace, Name: name},
		Spec:       v1alpha1.ConsumerSpec{StreamRef: &v1alpha1.StreamRef{Name: stream}},
	}
}

// settling is how long what is going on may go on once all are Ready: the event that tells of
// it, the line in the audit log.
const settling = time.Second

// listen lets time pass: that nothing happens can only be heard.
func (nt *natsTest) listen(d time.Duration) {
	nt.t.Helper()
	select {
	case <-time.After(d):
	case <-nt.t.Context().Done():
	}
}

// waits returns when a Consumer says that its Stream is missing.
func (nt *natsTest) waits(c *v1alpha1.Consumer) {
	nt.t.Helper()
	testenv.Wait(nt.t, nt.client, c, "the consumer to wait", func(c *v1alpha1.Consumer) bool {
		ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady)
		return ready != nil && ready.Reason == "DependenciesNotReady"
	})
}
