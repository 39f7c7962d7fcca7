package component

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// ReconcilerOptions configure a [Reconciler]. The zero value suits most.
type ReconcilerOptions struct {
	// CreateMissingNamespaces says whether namespaces of dependents are created that do not exist and
	// are not dependents themselves. Nil means true. They are never deleted.
	CreateMissingNamespaces *bool
	// AdoptionPolicy says what happens if a dependent exists and has no or another owner. Nil means
	// if-unowned. An annotation of the dependent has priority.
	AdoptionPolicy *AdoptionPolicy
	// UpdatePolicy says how dependents are updated. Nil means replace. An annotation of the dependent
	// has priority.
	UpdatePolicy *UpdatePolicy
	// DeletePolicy says whether dependents are deleted that are no longer rendered or whose component is deleted. Nil means
	// delete. An annotation of the dependent has priority.
	DeletePolicy *api.DeletePolicy
	// MissingNamespacesPolicy has priority over CreateMissingNamespaces. Nil means that it decides.
	MissingNamespacesPolicy *api.NamespacePolicy
	// SchemeBuilder adds types that generators return.
	SchemeBuilder SchemeBuilder

	// Finalizer is the finalizer of components. Nil means the name of the reconciler and "/finalizer". An operator that was
	// built with component-operator-runtime sets the one that its components have, which is its name by default.
	Finalizer *string

	// Kinds are the kinds of dependents, for the generated role. See [Options].
	Kinds []schema.GroupVersionKind
	// ManagedTypes are types that dependents add to the API. See [Options].
	ManagedTypes []api.TypeInfo
	// Kubeconfigs says what the kubeconfigs of components may contain. See [Options].
	Kubeconfigs KubeconfigOptions
	// DependentEvents records events about dependents. See [Options].
	DependentEvents bool
	// LastObservedAtEvery is the longest time between two writes of status.lastObservedAt. See [Options].
	LastObservedAtEvery time.Duration
}

// Reconciler runs a [Generator] over the components of kind T. It is a reconcile.Reconciler of
// controller-runtime. Make one with [NewReconciler]; its zero value is not usable.
type Reconciler[T Component] struct {
	*Controller[T]
}

// NewReconciler makes the controller of one kind of components, with the interfaces of
// component-operator-runtime. The name is that of [Options]: a DNS name that identifies the operator in
// the cluster. One default differs from [New]: dependents are replaced as a whole (update policy replace)
// instead of being applied on the server side (ssa-override).
//
// It panics if the generator is nil. Any other problem is an error of SetupWithManager.
func NewReconciler[T Component](name string, resourceGenerator Generator, options ReconcilerOptions) *Reconciler[T] {
	return newReconciler(name, resourceGenerator, options, func(*Options[T]) {})
}

// newReconciler is NewReconciler for tests, which change what it does not offer.
func newReconciler[T Component](name string, g Generator, options ReconcilerOptions, change func(*Options[T])) *Reconciler[T] {
	if g == nil {
		panic("component: NewReconciler needs a Generator; pass the value that implements Generate")
	}
	o := Options[T]{
		Name: name, Kinds: options.Kinds, Scheme: options.SchemeBuilder, LastObservedAtEvery: options.LastObservedAtEvery,
		ManagedTypes: options.ManagedTypes, Kubeconfigs: options.Kubeconfigs, DependentEvents: options.DependentEvents,
		Policies: api.Policies{UpdatePolicy: api.UpdatePolicyReplace},
	}
	if options.CreateMissingNamespaces != nil && !*options.CreateMissingNamespaces {
		o.Namespaces = api.NamespacePolicyDoNotCreate
	}
	if options.MissingNamespacesPolicy != nil {
		o.Namespaces = *options.MissingNamespacesPolicy
	}
	if options.DeletePolicy != nil {
		o.Policies.DeletePolicy = *options.DeletePolicy
	}
	if options.AdoptionPolicy != nil {
		o.Policies.AdoptionPolicy = *options.AdoptionPolicy
	}
	if options.UpdatePolicy != nil {
		o.Policies.UpdatePolicy = *options.UpdatePolicy
	}
	if options.Finalizer != nil {
		o.Loop.Finalizer = *options.Finalizer
	}
	change(&o)
	return &Reconciler[T]{New(FromGenerator[T](g), o)}
}

// WithPostReadHook adds a hook that is called after the component was read, in every pass. There is no
// client for the dependents then.
func (r *Reconciler[T]) WithPostReadHook(hook HookFunc[T]) *Reconciler[T] {
	return r.with(postRead, hook)
}

// WithPreReconcileHook adds a hook that is called before dependents are applied.
func (r *Reconciler[T]) WithPreReconcileHook(hook HookFunc[T]) *Reconciler[T] {
	return r.with(preReconcile, hook)
}

// WithPostReconcileHook adds a hook that is called in each pass that finds all dependents applied and
// ready.
func (r *Reconciler[T]) WithPostReconcileHook(hook HookFunc[T]) *Reconciler[T] {
	return r.with(postReconcile, hook)
}

// WithPreDeleteHook adds a hook that is called in each pass over a component that is being deleted, before
// dependents are deleted.
func (r *Reconciler[T]) WithPreDeleteHook(hook HookFunc[T]) *Reconciler[T] {
	return r.with(preDelete, hook)
}

// WithPostDeleteHook adds a hook that is called when all dependents of a component that is being deleted
// are gone. An error keeps the component.
func (r *Reconciler[T]) WithPostDeleteHook(hook HookFunc[T]) *Reconciler[T] {
	return r.with(postDelete, hook)
}

func (r *Reconciler[T]) with(at hook, f HookFunc[T]) *Reconciler[T] {
	r.worker.hooks[at] = append(r.worker.hooks[at], f)
	return r
}
