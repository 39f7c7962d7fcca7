package verify_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/shelf"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

type (
	options = verify.Options[*thing.Gadget]
	gadget  = thing.Gadget
)

// operatorTest is an operator of gadgets on a real API server, which may do no more than its manifests say.
type operatorTest struct {
	t         *testing.T
	api       *shelf.API
	options   options
	defines   verify.DefinitionManager[*gadget]
	cfg       *rest.Config
	admin     client.WithWatch
	requests  *testenv.Log
	namespace string
	stop      func()

	mu     sync.Mutex
	traced []trace.Record
}

func newOperatorTest(t *testing.T, api *shelf.API, change ...func(*options)) *operatorTest {
	t.Helper()
	w := prepareOperatorTest(t, api, change...)
	w.start()
	return w
}

func prepareOperatorTest(t *testing.T, api *shelf.API, change ...func(*options)) *operatorTest {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, thing.CRDs)
	w := &operatorTest{
		t: t, api: api, admin: testenv.Client(t, cfg, thing.AddToScheme), namespace: testenv.Namespace(t, cfg), defines: shelf.Definitions{},
		options: options{
			RequeueAfter: 100 * time.Millisecond, RequeueAfterSuccess: -1, RequeueAfterFailure: 50 * time.Millisecond, CreateGrace: -1,
			Limits: external.Limits{Adoption: "always"},
		},
	}
	for _, f := range change {
		f(&w.options)
	}
	w.options.Loop.Trace = w
	w.cfg, w.requests = testenv.Requests(testenv.User(t, cfg, w.rules()...))
	return w
}

// Record implements [trace.Sink].
func (w *operatorTest) Record(r trace.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traced = append(w.traced, r)
}

func (w *operatorTest) controller() *loop.Controller[*gadget] {
	w.t.Helper()
	c, err := verify.New(w.api, w.defines, w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// rules are what the operator may do by its own manifests.
func (w *operatorTest) rules() []rbacv1.PolicyRule {
	w.t.Helper()
	objects, err := operator.Manifests(operator.Options{
		Name: "gadgets", AddToScheme: thing.AddToScheme, CRDs: thing.CRDs,
		Controllers: func() ([]operator.Controller, error) { return []operator.Controller{w.controller()}, nil },
	}, operator.ManifestOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, obj := range objects {
		if role, ok := obj.(*rbacv1.ClusterRole); ok {
			return role.Rules
		}
	}
	w.t.Fatal("the manifests have no ClusterRole")
	return nil
}

// start runs the operator until the test ends or w.stop is called. Starting it again after that is a new process as far
// as the package can tell.
func (w *operatorTest) start() {
	w.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, thing.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(w.cfg, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.controller().SetupWithManager(mgr); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("manager: %v", err)
		}
	})
	w.t.Cleanup(w.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		w.t.Fatal("the cache did not sync")
	}
}

// create makes an object of size 1.
func (w *operatorTest) create(name string, change ...func(*gadget)) *gadget {
	w.t.Helper()
	g := &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: thing.GadgetSpec{Size: 1}}
	for _, f := range change {
		f(g)
	}
	if err := w.admin.Create(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

func annotated(key, value string) func(*gadget) {
	return func(g *gadget) { metav1.SetMetaDataAnnotation(&g.ObjectMeta, key, value) }
}

// permitted is the annotation with permissions.
func permitted(letters string) func(*gadget) {
	return annotated("trimtab.dev/access-permissions", letters)
}

func adopting(g *gadget) { annotated("trimtab.dev/adoption", "always")(g) }

func (w *operatorTest) object(name string) *gadget {
	return &gadget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

func (w *operatorTest) patch(name, body string) {
	w.t.Helper()
	if err := w.admin.Patch(w.t.Context(), w.object(name), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// poke asks for a pass.
func (w *operatorTest) poke(name, token string) {
	w.t.Helper()
	w.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"trimtab.dev/reconcile":%q}}}`, token))
}

func (w *operatorTest) delete(name string) {
	w.t.Helper()
	if err := w.admin.Delete(w.t.Context(), w.object(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *operatorTest) gone(name string) {
	w.t.Helper()
	testenv.Gone(w.t, w.admin, w.object(name), "gadget "+name)
}

func (w *operatorTest) get(name string) *gadget {
	w.t.Helper()
	g := w.object(name)
	if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *operatorTest) await(name, why string, ok func(*gadget) bool) *gadget {
	w.t.Helper()
	return testenv.Wait(w.t, w.admin, w.object(name), why, ok)
}

// is waits for a state that is about the present spec.
func (w *operatorTest) is(name string, s verify.ReconcileState) *gadget {
	w.t.Helper()
	return w.await(name, "state "+string(s), func(g *gadget) bool {
		return verify.StateOf(g) == s && g.Status.ObservedGeneration == g.Generation
	})
}

// says waits for a state with a message.
func (w *operatorTest) says(name string, s verify.ReconcileState, text string) *gadget {
	w.t.Helper()
	return w.await(name, fmt.Sprintf("state %s and %q", s, text), func(g *gadget) bool {
		return verify.StateOf(g) == s && strings.Contains(g.Status.Message, text)
	})
}

func (w *operatorTest) until(why string, ok func() bool) {
	w.t.Helper()
	if !poll.Until(ok) {
		w.t.Fatalf("waited for %s", why)
	}
}

// calls waits until the API has got n calls of a method for a gadget.
func (w *operatorTest) calls(method, name string, n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d calls of %s", n, method), func() bool { return len(w.api.Calls(method, name)) >= n })
}

func ready(g *gadget) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(g.Status.Conditions, "Ready"); c != nil {
		return c.Status
	}
	return "none"
}

// transitions are the states that passes over an object went through, as they were traced.
func (w *operatorTest) transitions(name string) (states []verify.ReconcileState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.traced {
		if t, ok := r.Event.(trace.Transition); ok && r.Object.Name == name {
			states = append(states, verify.ReconcileState(t.To))
		}
	}
	return states
}

// events are the bodies of the events that the operator recorded about an object.
func (w *operatorTest) events(name string) (all []string) {
	for _, r := range w.requests.Select(func(r testenv.Request) bool { return r.Resource == "events" && r.Verb != "get" }) {
		if body := string(r.Body); strings.Contains(body, `"name":"`+name+`"`) {
			all = append(all, body)
		}
	}
	return all
}

// follow notes the states that the status of objects has from now on. What it returns gives those of one.
func (w *operatorTest) follow() (states func(name string) []verify.ReconcileState) {
	w.t.Helper()
	var now thing.GadgetList
	if err := w.admin.List(w.t.Context(), &now, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	changes, err := w.admin.Watch(w.t.Context(), &thing.GadgetList{}, &client.ListOptions{
		Namespace: w.namespace, Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(changes.Stop)
	var mu sync.Mutex
	seen := map[string][]verify.ReconcileState{}
	go func() {
		for e := range changes.ResultChan() {
			g, is := e.Object.(*gadget)
			if !is || e.Type == watch.Deleted {
				continue
			}
			mu.Lock()
			if s := seen[g.Name]; g.Status.State != "" && (len(s) == 0 || s[len(s)-1] != verify.StateOf(g)) {
				seen[g.Name] = append(s, verify.StateOf(g))
			}
			mu.Unlock()
		}
	}()
	return func(name string) []verify.ReconcileState {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen[name])
	}
}
