package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// Controller is the controller whose pass is planned.
type Controller interface {
	TraceTo(trace.Sink)
	SetupWithManager(manager.Manager) error
}

// Request says which pass is planned.
type Request struct {
	// Config is the connection to the API server, with the permissions of the caller.
	Config *rest.Config
	// Options are the options of the operator's manager.
	Options manager.Options
	// Controller is the controller of Kind.
	Controller Controller
	Kind       schema.GroupVersionKind
	// Name is the object; File, if it is not nil, is the object as it would be applied.
	Name types.NamespacedName
	File *unstructured.Unstructured
	// Check is called with the manager before anything else. Nil checks nothing.
	Check func(meta.RESTMapper) error
	// Setup is called with the manager before the controller is added. Nil adds nothing.
	Setup func(manager.Manager) error
}

// Plan is what the next pass over an object would do.
type Plan struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Deleting: the object is being deleted, so the pass is one of its deletion.
	Deleting bool `json:"deleting,omitempty"`
	// File is what applying the file would change in the object; nil for a plan of an object of the cluster.
	File *Step `json:"file,omitempty"`
	// Steps are in the order of the pass.
	Steps []Step `json:"steps"`
	// Held: the pass ends before a call of another system, which a plan does not make. What comes after is not known.
	Held bool `json:"held,omitempty"`
	// State and Message are those that the status would have after the pass; empty if it would not be written.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	Ready   string `json:"ready,omitempty"`
	// Events would be recorded.
	Events []string `json:"events,omitempty"`
	// Again is when the next pass would be due without an event.
	Again string `json:"again,omitempty"`
	// Error is that of the pass.
	Error string `json:"error,omitempty"`
}

// Changes reports whether the pass, or applying the file, would change anything but the status of the object.
func (p *Plan) Changes() bool {
	if p.File != nil && p.File.Verb != verbUnchanged {
		return true
	}
	for _, s := range p.Steps {
		if s.changes() {
			return true
		}
	}
	return false
}

// Run runs a pass without changing anything.
func Run(ctx context.Context, r Request) (*Plan, error) {
	ctx, cancel := context.WithCancel(loop.WithDryRun(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	l := &log{}
	g := newGuard(l)
	m, err := r.manager(g, l)
	if err != nil {
		return nil, err
	}
	if r.Check != nil {
		if err := r.Check(m.GetRESTMapper()); err != nil {
			return nil, err
		}
	}
	p, err := r.take(ctx, m, g)
	if err != nil {
		return nil, err
	}
	r.Controller.TraceTo(l)
	if r.Setup != nil {
		if err := r.Setup(m); err != nil {
			return nil, err
		}
		m.passes, m.others = nil, nil // code of others, which a plan does not start
	}
	if err := r.Controller.SetupWithManager(m); err != nil {
		return nil, err
	}
	if m.passes == nil {
		return nil, fmt.Errorf("the controller of %s added no reconciler to the manager; only those of package loop and its like can be planned", r.Kind.Kind)
	}
	if err := m.start(ctx, &running); err != nil {
		return nil, err
	}
	passing, err := r.passes(ctx, m, l)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return p, p.conclude(l, g, passing, err)
}

// passes runs the next pass, and those that follow at once because all that it did was to record what comes next.
func (r *Request) passes(ctx context.Context, m *still, l *log) (result reconcile.Result, err error) {
	for range mostPasses {
		l.begin()
		result, err = m.passes.Reconcile(ctx, reconcile.Request{NamespacedName: r.Name})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > soon || !l.onlyRecorded() {
			return result, err
		}
		select {
		case <-time.After(result.RequeueAfter):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
	return result, err
}

const (
	// soon is the longest delay of a pass that follows at once: it begins when a cache shows what it must show.
	soon       = time.Second
	mostPasses = 20
)

// manager returns the manager of the pass.
func (r *Request) manager(g *guard, l *log) (*still, error) {
	config := rest.CopyConfig(r.Config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json" // which the guard can read
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	g.base = strings.TrimSuffix(server.Path, "/")
	config.Wrap(g.wrap)
	o := r.Options
	o.LeaderElection, o.Metrics = false, metricsserver.Options{BindAddress: "0"}
	o.Controller.SkipNameValidation = new(true)
	mgr, err := manager.New(config, o)
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("set up the client: %w", err)
	}
	return &still{Manager: mgr, client: direct, log: l}, nil
}

// take reads the object of the pass, or makes it from the file, and has the guard answer for it.
func (r *Request) take(ctx context.Context, m *still, g *guard) (*Plan, error) {
	mapping, err := m.GetRESTMapper().RESTMapping(r.Kind.GroupKind(), r.Kind.Version)
	if err != nil {
		return nil, fmt.Errorf("look up %s in the API server: %w", r.Kind.GroupKind(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		r.Name.Namespace = ""
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(r.Kind)
	err = m.client.Get(ctx, r.Name, live)
	switch {
	case apierrors.IsNotFound(err) && r.File != nil:
		live.Object = nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %s; to plan one that does not exist yet, give its file with -f", r.Kind.Kind, r.Name)
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", r.Kind.Kind, r.Name, err)
	}
	p := &Plan{Kind: r.Kind.Kind, Namespace: r.Name.Namespace, Name: r.Name.Name}
	subject := live
	if r.File != nil {
		if subject, err = r.apply(ctx, m, live.Object != nil); err != nil {
			return nil, err
		}
		p.File = fileStep(mapping.Resource, r.Name, live.Object, subject.Object)
	}
	p.Deleting = subject.GetDeletionTimestamp() != nil
	g.hold(pathOf(mapping.Resource, r.Name), subject.Object)
	g.log.steps = nil
	return p, nil
}

// apply returns the object as the API server would have it if the file were applied.
func (r *Request) apply(ctx context.Context, m *still, exists bool) (*unstructured.Unstructured, error) {
	o := r.File.DeepCopy()
	o.SetNamespace(r.Name.Namespace)
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	err := m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("trimtab-plan"), client.ForceOwnership, client.DryRunAll)
	if err != nil {
		return nil, fmt.Errorf("the API server would refuse %s %s: %w", r.Kind.Kind, r.Name, err)
	}
	if !exists && o.GetResourceVersion() == "" {
		o.SetResourceVersion("1") // none yet, and a client expects one
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1)
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(metav1.Now())
	}
	return o, nil
}

// fileStep describes what applying a file would change.
func fileStep(of schema.GroupVersionResource, name types.NamespacedName, live, applied map[string]any) *Step {
	t := target{group: of.Group, resource: of.Resource, namespace: name.Namespace, name: name.Name}
	s := &Step{Verb: verbUpdate, Object: titleOf(t, applied), Fields: differences(t, decode(encode(live)), decode(encode(applied)))}
	switch {
	case live == nil:
		s.Verb = verbCreate
	case len(s.Fields) == 0:
		s.Verb = verbUnchanged
	}
	return s
}

// pathOf returns the path of an object in the API.
func pathOf(of schema.GroupVersionResource, name types.NamespacedName) string {
	root := "/apis/" + of.Group + "/" + of.Version
	if of.Group == "" {
		root = "/api/" + of.Version
	}
	if name.Namespace != "" {
		root += "/namespaces/" + name.Namespace
	}
	return root + "/" + of.Resource + "/" + name.Name
}

// conclude describes how the pass ended.
func (p *Plan) conclude(l *log, g *guard, result reconcile.Result, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end.Outcome == "" { // it did not begin
		return errors.Join(errors.New("the pass did not begin"), err)
	}
	p.Steps, p.Events, p.Error = l.steps, l.told, l.end.Err
	if p.Steps == nil {
		p.Steps = []Step{}
	}
	for _, s := range p.Steps {
		p.Held = p.Held || s.Verb == verbCall
	}
	if after := max(l.end.Again, result.RequeueAfter); after > 0 {
		p.Again = after.Round(time.Millisecond).String()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !p.Held {
		p.status(g.subject)
	}
	return nil
}

// status takes what the status would say from the object after the pass.
func (p *Plan) status(o map[string]any) {
	p.State, _, _ = unstructured.NestedString(o, "status", "state")
	p.Message, _, _ = unstructured.NestedString(o, "status", "message")
	list, _, _ := unstructured.NestedSlice(o, "status", "conditions")
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == "Ready" {
			p.Ready, _ = c["status"].(string)
		}
	}
}

// JSON returns the plan as JSON.
func (p *Plan) JSON() ([]byte, error) { return json.MarshalIndent(p, "", "  ") }
