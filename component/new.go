package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/apply"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Options tune a [Controller]. Name and Kinds are required.
type Options[T Object] struct {
	// Name is the operator's: a DNS name such as "shop.example.org". It is the prefix of the
	// annotations and the label on dependents, and the name of their field manager. Operators in
	// one cluster need different names. Changing it later makes the operator lose its dependents.
	Name string
	// Kinds are the kinds of dependents. The generated role allows these, and no others are
	// applied. None means that any kind may be applied; permissions for them are yours to grant.
	Kinds []schema.GroupVersionKind
	// Policies say how dependents are treated that have no annotation. What is empty is
	// if-unowned, on-object-change, ssa-override, delete.
	Policies api.Policies
	// Namespaces says what happens if the namespace of a dependent does not exist and is not a
	// dependent itself. Empty means that it is created; it is never deleted.
	Namespaces api.NamespacePolicy
	// RequeueInterval is when a component that is ready is looked at again although nothing
	// changed. Zero means 10 minutes.
	RequeueInterval time.Duration
	// Timeout is how long dependents may take to become ready before the component's state is
	// Error. Zero means RequeueInterval.
	Timeout time.Duration
	// Loop tunes the loop. Its Name defaults to the kind in lower case.
	Loop loop.Options[T]
}

// Controller runs a [Renderer] over the components of kind T. Make one with [New]; its zero value is not
// usable.
type Controller[T Object] struct {
	*loop.Controller[T]

	engine *engine.Engine
	waker  *trigger.Waker
	worker *worker[T]
}

// New makes the controller of one kind of components. It panics if r is nil. Any other problem with the
// options is an error of [Controller.SetupWithManager] and [Controller.Needs].
func New[T Object](r Renderer[T], o Options[T]) *Controller[T] {
	if r == nil {
		panic("component: New needs a Renderer; pass the value that implements Render")
	}
	e := &engine.Engine{Name: o.Name, Policies: o.policies(), Namespaces: o.Namespaces}
	w := &worker[T]{renderer: r, engine: e, options: o}
	waker := new(trigger.Waker)
	options := o.Loop
	options.Sources = append(slices.Clone(options.Sources), trigger.External[T]{Waker: waker})
	options.Needs = append(slices.Clone(options.Needs), o.needs()...)
	options.Problem = errors.Join(options.Problem, o.problem())
	if options.Finalizer == "" && o.Name != "" {
		options.Finalizer = o.Name + "/finalizer"
	}
	return &Controller[T]{Controller: loop.New(w, options), engine: e, waker: waker, worker: w}
}

// SetupWithManager adds the controller to mgr.
func (c *Controller[T]) SetupWithManager(mgr manager.Manager) error {
	if err := c.Controller.SetupWithManager(mgr); err != nil {
		return err
	}
	writes, err := apply.New(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetRESTMapper(), c.engine.Name)
	if err != nil {
		return err
	}
	cache, err := projection.New(projection.Options{
		Config: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(),
		Names: projection.Names{
			Manager: c.engine.Name, OwnerLabel: desired.OwnerKey(c.engine.Name), Owner: desired.OwnerKey(c.engine.Name),
			Digest: desired.DigestKey(c.engine.Name), Hints: c.engine.Name + "/status-hint",
		},
		Changed: c.changed,
	})
	if err != nil {
		return err
	}
	c.engine.Scheme = mgr.GetScheme()
	c.engine.Target = engine.Target{Client: writes, Cache: cache, Mapper: mgr.GetRESTMapper()}
	return mgr.Add(cache)
}

// changed wakes the component of a dependent that somebody else changed.
func (c *Controller[T]) changed(owner string, _ projection.Key) {
	id, _, _ := desired.ParseOwner(owner)
	if _, name, ok := strings.Cut(id, "/"); ok {
		namespace, name, _ := strings.Cut(name, "/")
		c.waker.Objects(types.NamespacedName{Namespace: namespace, Name: name})
	}
}

// policies are the operator's, complete.
func (o Options[T]) policies() api.Policies {
	return api.Policies{
		AdoptionPolicy:  cmp.Or(o.Policies.AdoptionPolicy, api.AdoptionPolicyIfUnowned),
		ReconcilePolicy: cmp.Or(o.Policies.ReconcilePolicy, api.ReconcilePolicyOnObjectChange),
		UpdatePolicy:    cmp.Or(o.Policies.UpdatePolicy, api.UpdatePolicySsaOverride),
		DeletePolicy:    cmp.Or(o.Policies.DeletePolicy, api.DeletePolicyDelete),
		ConflictPolicy:  o.Policies.ConflictPolicy, ImmutablePolicy: o.Policies.ImmutablePolicy, Mode: o.Policies.Mode,
	}
}

// needs are the permissions for the dependents.
func (o Options[T]) needs() []loop.Need {
	needs := []loop.Need{{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"get"},
		Names: []string{metav1.NamespaceSystem}, ClusterWide: true,
	}}
	if o.Namespaces != api.NamespacePolicyDoNotCreate {
		needs = append(needs, loop.Need{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"create"}, ClusterWide: true,
		})
	}
	for _, kind := range o.Kinds {
		needs = append(needs, loop.Need{
			GroupVersionKind: kind, Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"}, ClusterWide: true,
		})
	}
	return needs
}

// problem is what is wrong with the options.
func (o Options[T]) problem() error {
	if wrong := validation.IsDNS1123Subdomain(o.Name); len(wrong) > 0 {
		return fmt.Errorf("component: Options.Name %q must be a DNS name such as shop.example.org: %s", o.Name, strings.Join(wrong, "; "))
	}
	return nil
}

func (o Options[T]) requeue() time.Duration { return cmp.Or(o.RequeueInterval, 10*time.Minute) }
func (o Options[T]) timeout() time.Duration { return cmp.Or(o.Timeout, o.requeue()) }

// worker is the [loop.Reconciler] of a kind of components.
type worker[T Object] struct {
	renderer Renderer[T]
	engine   *engine.Engine
	options  Options[T]
	cluster  cluster
}

// Reconcile implements [loop.Reconciler].
func (w *worker[T]) Reconcile(ctx context.Context, run *loop.Run[T]) loop.Outcome {
	c, err := w.component(ctx, run)
	if err != nil {
		return w.fail(run, err)
	}
	return w.conclude(run, w.engine.Apply(ctx, c))
}

// Cleanup implements [loop.Cleaner].
func (w *worker[T]) Cleanup(ctx context.Context, run *loop.Run[T]) loop.CleanupOutcome {
	c, err := w.component(ctx, run)
	if err != nil {
		return loop.CleanupFailed(err)
	}
	result := w.engine.Delete(ctx, c)
	switch {
	case result.Err != nil:
		return loop.CleanupFailed(result.Err)
	case result.Ready:
		return loop.CleanedUp()
	}
	run.Report(deleting(result))
	return loop.KeepUntilEvent()
}

// component shows an object to the engine.
func (w *worker[T]) component(ctx context.Context, run *loop.Run[T]) (engine.Component, error) {
	cluster, err := w.cluster.get(ctx, run.Live())
	if err != nil {
		return engine.Component{}, err
	}
	key := client.ObjectKeyFromObject(run.Obj)
	return engine.Component{
		NamespacedName: key, UID: run.Obj.GetUID(), Generation: run.Obj.GetGeneration(), Owner: cluster + "/" + key.String(), In: key.Namespace,
		Status: run.Obj.GetStatus(),
		Render: func(ctx context.Context) ([]client.Object, error) {
			copied, _ := run.Obj.DeepCopyObject().(T)
			set, err := w.renderer.Render(ctx, RenderRequest[T]{Component: copied, NamespacedName: key})
			if err != nil {
				return nil, err
			}
			return set.objects(w.engine.Name, w.engine.Scheme)
		},
	}, nil
}
