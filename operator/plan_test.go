package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trigger"
)

// planner runs the command "plan" of an operator.
type planner struct {
	t         *testing.T
	cfg       *rest.Config
	client    client.WithWatch
	namespace string
	options   operator.Options
}

func newPlanner(t *testing.T, o operator.Options) *planner {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, o.CRDs)
	p := &planner{t, cfg, testenv.Client(t, cfg, o.AddToScheme), testenv.Namespace(t, cfg), o}
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "kube-root-ca.crt"}}
	testenv.Wait(t, p.client, root, "the certificates that a controller adds to each namespace", func(*corev1.ConfigMap) bool { return true })
	return p
}

// shown is a plan as JSON.
type shown struct {
	Kind, Name, State, Message, Error string
	Deleting, Held                    bool
	File                              *shownStep
	Steps                             []shownStep
}

type shownStep struct {
	Verb, Object, Subresource, Op, Rule, Error string
	Fields                                     []struct{ Path, From, To string }
}

// did returns the steps that change something, as lines.
func (s shown) did() []string {
	var lines []string
	for _, step := range s.Steps {
		switch {
		case step.Verb == "call":
			lines = append(lines, "call "+step.Op)
		case slices.Contains([]string{"create", "update", "delete"}, step.Verb) && step.Subresource == "":
			lines = append(lines, step.Verb+" "+step.Object)
		}
	}
	return lines
}

// plan runs the command, and fails the test if anything was written.
func (p *planner) plan(code int, args ...string) (shown, string) {
	p.t.Helper()
	before := p.versions()
	args = append([]string{"plan", "-n", p.namespace, "--kubeconfig", testenv.Kubeconfig(p.t, p.cfg), "-o", "json"}, args...)
	var out, errOut bytes.Buffer
	got := operator.Run(p.t.Context(), args, &out, &errOut, p.options)
	if got != code {
		p.t.Errorf("%q: exit code %d, want %d; it printed\n%s%s", args, got, code, &out, &errOut)
	}
	if diff := cmp.Diff(before, p.versions()); diff != "" {
		p.t.Errorf("%q: a plan changed the cluster (-before +after):\n%s", args, diff)
	}
	var s shown
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &s); err != nil {
			p.t.Errorf("%v in\n%s", err, &out)
		}
	}
	return s, out.String() + errOut.String()
}

// versions returns the resourceVersions of all objects in the namespace.
func (p *planner) versions() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	lists := []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, &eventsv1.EventList{}}
	for kind := range p.client.Scheme().AllKnownTypes() {
		if strings.HasSuffix(kind.Group, "trimtab.dev") && strings.HasSuffix(kind.Kind, "List") {
			o, err := p.client.Scheme().New(kind)
			if err != nil {
				p.t.Fatal(err)
			}
			if list, ok := o.(client.ObjectList); ok {
				lists = append(lists, list)
			}
		}
	}
	for _, list := range lists {
		if err := p.client.List(p.t.Context(), list, client.InNamespace(p.namespace)); meta.IsNoMatchError(err) {
			continue
		} else if err != nil {
			p.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			if err == nil {
				all[fmt.Sprintf("%T %s", o, m.GetName())] = m.GetResourceVersion()
			}
			return err
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return all
}

// file writes an object to a file.
func (p *planner) file(o client.Object) string {
	p.t.Helper()
	o, _ = o.DeepCopyObject().(client.Object)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetUID("")
	kind, err := p.client.GroupVersionKindFor(o)
	if err != nil {
		p.t.Fatal(err)
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		p.t.Fatal(err)
	}
	delete(fields, "status")
	text, err := json.Marshal(fields)
	if err != nil {
		p.t.Fatal(err)
	}
	name := filepath.Join(p.t.TempDir(), "object.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// while runs the operator, until f returns.
func (p *planner) while(f func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan int)
	var errOut bytes.Buffer
	go func() {
		ended <- operator.Run(ctx, []string{
			"manager", "--kubeconfig", testenv.Kubeconfig(p.t, p.cfg), "--watch-namespaces", p.namespace, "--leader-elect=false",
			"--metrics-address=0", "--health-address=0", "--debug-address=0",
		}, &errOut, &errOut, p.options)
	}()
	f()
	cancel()
	if code := <-ended; code != 0 {
		p.t.Fatalf("the operator ended with %d\n%s", code, &errOut)
	}
}

func (p *planner) want(s shown, want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(want, s.did()); diff != "" {
		p.t.Errorf("steps (-want +got):\n%s\n%+v", diff, s)
	}
}

// bundles is an operator of components.
func bundles() operator.Options {
	render := func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		objects, err := r.Component.Render()
		for _, o := range objects {
			s.Add(o)
		}
		return s, err
	}
	return operator.Options{
		Name: "bundles", AddToScheme: bundle.AddToScheme, CRDs: bundle.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{component.New(component.RenderFunc[*bundle.Bundle](render), component.Options[*bundle.Bundle]{Name: "plans.trimtab.dev"})}, nil
		},
	}
}

func object(kind, name string, data map[string]string) runtime.RawExtension {
	field := map[string]string{"ConfigMap": "data", "Secret": "stringData"}[kind]
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]string{"name": name}, field: data})
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: text}
}

// TestPlanComponent: the plan of a component says what its next pass would create, change and delete, for objects of the
// cluster and of files, and changes nothing.
func TestPlanComponent(t *testing.T) {
	p := newPlanner(t, bundles())
	b := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "shop"}}
	b.Spec.Objects = []runtime.RawExtension{
		object("ConfigMap", "texts", map[string]string{"welcome": "hello"}),
		object("ConfigMap", "old", map[string]string{"a": "b"}),
		object("Secret", "login", map[string]string{"password": "hunter2"}),
	}
	created := []string{"create ConfigMap/" + p.namespace + "/old", "create ConfigMap/" + p.namespace + "/texts", "create Secret/" + p.namespace + "/login"}
	s, text := p.plan(2, "-f", p.file(b))
	if got := slices.DeleteFunc(s.did(), func(l string) bool { return !strings.HasPrefix(l, "create") }); !cmp.Equal(slices.Sorted(slices.Values(got)), created) {
		t.Errorf("a file of a new object: steps %q, want %q; it printed\n%s", got, created, text)
	}
	if s.File == nil || s.File.Verb != "create" {
		t.Errorf("file step %+v, want create", s.File)
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("the plan shows a value of a Secret:\n%s", text)
	}
	if err := p.client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s, text = p.plan(2, "bundle/shop")
	if got := slices.DeleteFunc(s.did(), func(l string) bool { return !strings.HasPrefix(l, "create") }); !cmp.Equal(slices.Sorted(slices.Values(got)), created) {
		t.Errorf("a new object of the cluster: steps %q, want %q; it printed\n%s", got, created, text)
	}
	p.while(func() {
		testenv.Wait(t, p.client, b, "the bundle to be Ready", func(b *bundle.Bundle) bool {
			return b.Status.AppliedGeneration == b.Generation && meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionReady)
		})
	})
	s, _ = p.plan(0, "bundle/shop")
	p.want(s)

	changed := b.DeepCopy()
	changed.Spec.Objects = []runtime.RawExtension{
		object("ConfigMap", "texts", map[string]string{"welcome": "ahoy"}),
		object("Secret", "login", map[string]string{"password": "hunter3"}),
	}
	s, text = p.plan(2, "-f", p.file(changed))
	if strings.Contains(text, "\"hunter") || !strings.Contains(text, "(sensitive)") {
		t.Errorf("the plan should show that a value of the Secret changes, and not the value:\n%s", text)
	}
	at := slices.IndexFunc(s.Steps, func(s shownStep) bool { return s.Object == "ConfigMap/"+p.namespace+"/texts" })
	if at < 0 || !slices.ContainsFunc(s.Steps[at].Fields, func(f struct{ Path, From, To string }) bool {
		return f.Path == "data.welcome" && f.From == `"hello"` && f.To == `"ahoy"`
	}) {
		t.Errorf("the plan does not show the change of data.welcome:\n%s", text)
	}

	if err := p.client.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s, text = p.plan(2, "bundle/shop")
	if !s.Deleting || !slices.Contains(s.did(), "delete ConfigMap/"+p.namespace+"/old") {
		t.Errorf("the plan of a deletion: steps %q; it printed\n%s", s.did(), text)
	}
}

// items is a driver of a simulated cloud.
type items struct{}

func (items) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *simcloud.Client]) (external.Observation[simcloud.Item], error) {
	i, err := r.Client.Get(ctx, r.ID)
	return external.Available(i, external.MarkOf(i.Tags)), err
}

func (items) Compare(r external.CompareRequest[*thing.Thing, simcloud.Item]) external.Changes {
	return external.Field("spec.size", strconv.Itoa(r.Object.Spec.Size), r.Have.Properties["size"])
}

func (items) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *simcloud.Client]) (external.CreateResponse[simcloud.Item], error) {
	_, err := r.Client.Create(ctx, simcloud.Item{Name: r.ID, Properties: map[string]string{"size": strconv.Itoa(r.Object.Spec.Size)}, Tags: r.Mark.On(nil)}, "")
	return external.CreateResponse[simcloud.Item]{}, err
}

func (items) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *simcloud.Client, simcloud.Item]) (external.UpdateResponse[simcloud.Item], error) {
	_, err := r.Client.Update(ctx, r.ID, map[string]string{"size": strconv.Itoa(r.Object.Spec.Size)})
	return external.UpdateResponse[simcloud.Item]{}, err
}

func (items) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *simcloud.Client]) (external.DeleteResponse, error) {
	_, err := r.Client.Delete(ctx, r.ID)
	return external.DeleteResponse{}, err
}

// TestPlanExternal: the plan of an external resource reads it, says which call is next, and makes none that changes it.
func TestPlanExternal(t *testing.T) {
	cloud := simcloud.New(simcloud.Options{})
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	p := newPlanner(t, operator.Options{
		Name: "things", AddToScheme: thing.AddToScheme, CRDs: thing.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{external.New(items{}, external.Options[*thing.Thing, *simcloud.Client]{
				Connect: func(context.Context) (*simcloud.Client, error) { return &simcloud.Client{URL: server.URL}, nil },
			})}, nil
		},
	})
	plan := func(code int, args ...string) (shown, string) {
		t.Helper()
		items, calls := maps.Clone(cloud.Items()), len(cloud.Log())
		s, text := p.plan(code, args...)
		for _, r := range cloud.Log()[calls:] {
			if r.Method != "GET" {
				t.Errorf("a plan called the cloud: %s", r)
			}
		}
		if len(cloud.Log()) == calls {
			t.Errorf("the plan did not read the resource; it printed\n%s", text)
		}
		if diff := cmp.Diff(items, cloud.Items()); diff != "" {
			t.Errorf("a plan changed the cloud (-before +after):\n%s", diff)
		}
		return s, text
	}
	orders := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "orders"}, Spec: thing.Spec{Size: 1}}
	about := "Thing/" + p.namespace + "/orders"
	s, text := plan(2, "-f", p.file(orders))
	if !s.Held || !slices.Contains(s.did(), "call Create") && !slices.Contains(s.did(), "call create") {
		t.Errorf("a new file: %q\n%s", s.did(), text)
	}
	if err := p.client.Create(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	s, _ = plan(2, "thing/orders")
	p.want(s, "update "+about, "call create")
	p.while(func() {
		testenv.Wait(t, p.client, orders, "the thing to be Ready", func(o *thing.Thing) bool {
			return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionReady)
		})
	})
	s, _ = plan(0, "things/orders")
	p.want(s)

	bigger := orders.DeepCopy()
	bigger.Spec.Size = 2
	s, text = plan(2, "-f", p.file(bigger))
	p.want(s, "call update")
	if !strings.Contains(text, `"spec.size"`) {
		t.Errorf("the plan does not show the difference:\n%s", text)
	}
	if err := p.client.Delete(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	s, _ = plan(2, "thing/orders")
	p.want(s, "call delete")
}

// counting is a plain reconciler.
type counting struct{ calls *int }

func (g counting) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	*g.calls++
	if !loop.IsDryRun(ctx) {
		return loop.Fail(fmt.Errorf("no dry run"))
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Obj.Namespace, Name: r.Obj.Name}, Data: map[string]string{"size": strconv.Itoa(r.Obj.Spec.Size)}}
	if err := r.Client().Create(ctx, m); err != nil {
		return loop.Fail(err)
	}
	r.Conditions().True("Ready", "Greeted", "greeted")
	return loop.Done()
}

// TestPlanPlain: the code of a plain reconciler is not run unless somebody says so.
func TestPlanPlain(t *testing.T) {
	calls := 0
	p := newPlanner(t, operator.Options{
		Name: "greeter", AddToScheme: probe.AddToScheme, CRDs: probe.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			// A source that waits for the queue of the controller, which a plan does not have.
			yearly := &trigger.Cron[*probe.Probe]{Of: func(*probe.Probe) string { return "0 0 1 1 *" }}
			return []operator.Controller{loop.New(counting{&calls}, loop.Options[*probe.Probe]{Sources: []trigger.Source[*probe.Probe]{yearly}})}, nil
		},
	})
	orders := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "orders"}, Spec: probe.ProbeSpec{Size: 3}}
	if err := p.client.Create(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	if _, text := p.plan(1, "probe/orders"); calls != 0 || !strings.Contains(text, "--run-reconcile") {
		t.Errorf("%d calls, want none and the way out; it printed %s", calls, text)
	}
	s, _ := p.plan(2, "probe/orders", "--run-reconcile")
	p.want(s, "create ConfigMap/"+p.namespace+"/orders")
	if calls != 1 {
		t.Errorf("%d calls of Reconcile, want 1", calls)
	}
	if _, text := p.plan(1, "probe/missing", "--run-reconcile"); !strings.Contains(text, "-f") {
		t.Errorf("a missing object: it printed %s", text)
	}
}
