package component

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/component/internal/inventory"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
	"github.com/trimtab-dev/trimtab/component/internal/rules"
	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Options configure a [Controller]. Name is required.
type Options[T Object] struct {
	// Name is the operator's name: a DNS name such as "shop.example.org". It is the prefix of the
	// annotations and the label on dependents, and the name of the field manager. Operators in one
	// cluster need different names. If it is changed later, the operator loses its dependents.
	Name string
	// Kinds are the kinds of dependents. The generated role contains permissions for them. Objects of
	// other kinds are rejected. Empty means that all kinds are accepted; you grant the permissions.
	Kinds []schema.GroupVersionKind
	// Within are the namespaces in which dependents may be, besides the target namespace of their
	// component. A component that renders an object elsewhere is rejected. Empty means all namespaces.
	Within []string
	// Policies are the policies of dependents without an annotation. The defaults are if-unowned,
	// on-object-change, ssa-override and delete.
	Policies api.Policies
	// Namespaces says what happens if the namespace of a dependent does not exist and is not itself a
	// dependent. Empty means that it is created. Such a namespace is never deleted.
	Namespaces api.NamespacePolicy
	// PruneLimit is the largest share of its dependents, from 0 to 1, that a component may lose at a time
	// because they are no longer rendered. If it would lose more, or all, they are kept, and the condition
	// PruneBlocked says so. To delete them, set the component's annotation allow-prune to its
	// metadata.generation. An object counts as replaced rather than lost if a new object of the same kind and
	// namespace is rendered whose name differs only after the last hyphen. Zero means 0.5; 1 or more means
	// no limit.
	PruneLimit float64
	// HandoverGrace is how long a dependent that is no longer rendered is kept, so that another component
	// of the same namespace can take it over; see docs/components.md. Zero means 5 seconds. A negative value
	// means that it is deleted at once, unless another component has recorded it.
	HandoverGrace time.Duration
	// Inventory says how inventories are stored.
	Inventory InventoryOptions
	// ManagedTypes are types that dependents add to the API by themselves, for example because a
	// Deployment installs a CustomResourceDefinition. Group and kind may be "*". Dependents of these types
	// are applied last and deleted first. A component is not deleted while others have objects of them.
	ManagedTypes []api.TypeInfo
	// ProtectDefinitions protects each CustomResourceDefinition among the dependents from deletion by
	// anybody, because its objects would be deleted with it. The operator creates a
	// ValidatingAdmissionPolicy named "<name>.definitions". To release a definition, set its annotation
	// release to its UID. Components do this when they may delete it, and protect it again if they still
	// render it a minute later. The policy outlives the components; see docs/components.md.
	ProtectDefinitions bool
	// Scheme adds types that the renderer returns to those of the manager's scheme. Nil adds none. A
	// [Renderer] can implement SchemeBuilder instead.
	Scheme SchemeBuilder
	// Singleton allows only one component in the namespaces that the operator watches: the oldest one. Of
	// several that were created in the same second, it is the first by namespace and name. The others are
	// not reconciled. Their condition Ready is False with the reason Singleton and names the allowed one.
	Singleton bool
	// CorrectInterval is the time between two corrections of a dependent that others keep changing: one
	// with more than three corrections in five minutes. Zero means one minute.
	CorrectInterval time.Duration
	// RequeueInterval is the time between two passes over a ready component without an event. One to five
	// percent are added. Zero means 10 minutes. [RequeueConfiguration] of a component has priority.
	RequeueInterval time.Duration
	// LastObservedAtEvery is the longest time between two writes of status.lastObservedAt. Zero means that
	// it is written only together with another change of the status.
	LastObservedAtEvery time.Duration
	// Timeout is how long dependents may take to become ready before the component's state is
	// Error. Zero means the requeue interval. [TimeoutConfiguration] of a component has priority.
	Timeout time.Duration
	// WaveTimeout is how long the dependents of one wave may take to become ready before the component's
	// state is Error. Zero means that only Timeout counts. [WaveTimeoutConfiguration] of a component has
	// priority. The annotation timeout sets a limit for a single dependent.
	WaveTimeout time.Duration
	// Kubeconfigs says what the kubeconfigs of components may contain.
	Kubeconfigs KubeconfigOptions
	// DeleteAsOperator deletes the dependents of a component without impersonation, as the operator or as
	// the user of the kubeconfig, if the impersonated user is not allowed to. This happens when its role
	// binding is deleted with the namespace. False means that the deletion waits for the permission.
	DeleteAsOperator bool
	// DependentEvents records an event for each successful or failed creation, update and deletion of a
	// dependent in the operator's own cluster. Each event is a request to the API server. The annotation
	// disable-events: "true" of a component switches off these events and those about the component.
	DependentEvents bool
	// Health contains rules for the health of dependents by kind. Nil means that there are none. The
	// annotation health of an object, a map with the fields of [health.Expressions], has priority. Kinds
	// without a status, such as ConfigMap, cannot have a rule.
	Health map[schema.GroupKind]health.Expressions
	// HealthCompiler compiles Health and the annotations. Use cel.Compiler{} of package health/cel. Nil
	// means that rules are rejected.
	HealthCompiler health.Compiler
	// Drivers manage dependents that are external resources; external.Nodes makes one for a kind. A driver
	// must stay as long as an inventory lists dependents of its kind. Without it, they are neither deleted
	// nor forgotten.
	Drivers []node.Driver
	// Loop configures the loop. Its Name defaults to the kind in lower case.
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
	judges, wrong := rules.New(o.HealthCompiler, o.Health)
	e := &engine.Engine{Name: o.Name, Policies: o.policies(), Namespaces: o.Namespaces, Rules: judges, Pause: o.CorrectInterval, Kinds: o.Kinds, Within: o.Within, ManagedTypes: o.ManagedTypes, PruneLimit: o.PruneLimit, Grace: o.HandoverGrace, Protect: o.ProtectDefinitions}
	w := &worker[T]{renderer: r, engine: e, options: o, inventories: inventory.Store{Limits: o.Inventory.limits(), Operator: o.Name}, references: references{referring: referringTypes(reflect.TypeFor[T]())}}
	waker := new(trigger.Waker)
	options := o.Loop
	driverNeeds, driverProblem := o.driverNeeds()
	options.Sources = slices.Concat(options.Sources, []trigger.Source[T]{trigger.External[T]{Waker: waker}}, sourcesOf[T](w.references.referring))
	options.Needs = slices.Concat(options.Needs, o.needs(), w.references.needs(), impersonationNeeds[T](), holdNeeds[T](w.references.referring, o.Kubeconfigs), driverNeeds)
	if n, ok := r.(needy); ok {
		options.Needs = append(options.Needs, n.Needs()...)
	}
	options.PlainClient = true
	if options.Generation == loop.GenerationAware {
		options.Generation = loop.SpecOnly
	}
	options.Problem = errors.Join(options.Problem, o.problem(), wrong, driverProblem)
	options.WakeOn = append(slices.Clone(options.WakeOn), o.Name+"/mode", o.Name+"/abandon", o.Name+"/left-behind", o.Name+"/restored-from", o.Name+"/allow-prune",
		o.Name+"/"+api.SuffixHelmRelease, engine.WithoutHooksKey(o.Name))
	options.Finalizer = o.finalizer()
	var author loop.Reconciler[T] = w
	if o.Singleton {
		author = &singleton[T]{w}
	}
	return &Controller[T]{Controller: loop.New(author, options), engine: e, waker: waker, worker: w}
}

// finalizer is the finalizer of components; empty if the options have no name.
func (o Options[T]) finalizer() string {
	if o.Loop.Finalizer != "" || o.Name == "" {
		return o.Loop.Finalizer
	}
	return o.Name + "/finalizer"
}

// Trigger asks for a pass over a component now, if it exists.
func (c *Controller[T]) Trigger(namespace, name string) {
	c.waker.Objects(types.NamespacedName{Namespace: namespace, Name: name})
}

// SetupWithManager adds the controller to mgr.
func (c *Controller[T]) SetupWithManager(mgr manager.Manager) error {
	if err := c.Controller.SetupWithManager(mgr); err != nil {
		return err
	}
	registerMetrics()
	scheme, err := c.worker.scheme(mgr.GetScheme())
	if err != nil {
		return err
	}
	targets, err := target.New(target.Options{
		Config: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(), Scheme: mgr.GetScheme(),
		Names: projection.Names{
			Manager: c.engine.Name, OwnerLabel: desired.OwnerKey(c.engine.Name), Owner: desired.OwnerKey(c.engine.Name),
			Digest: desired.DigestKey(c.engine.Name), Hints: desired.HintsKey(c.engine.Name), Release: prune.ReleaseKey(c.engine.Name),
			Health: desired.HealthKey(c.engine.Name), Rules: c.engine.Rules,
		},
		Changed: c.changed, Wake: c.waker.Objects, Allow: c.worker.options.Kubeconfigs.allow(),
		Count:     func(started bool) { countClient(c.engine.Name, started) },
		IdleWatch: c.worker.idleWatch,
	})
	if err != nil {
		return err
	}
	c.engine.Scheme, c.worker.targets, c.worker.recorder = scheme, targets, mgr.GetEventRecorder(c.engine.Name)
	if c.engine.Drivers, err = c.worker.options.drivers(scheme); err != nil {
		return err
	}
	c.worker.references.cache = mgr.GetCache()
	if err := errors.Join(c.worker.setupHolds(mgr), c.worker.watchInventories(mgr, c.waker.Objects)); err != nil {
		return err
	}
	c.engine.Wake = func(name types.NamespacedName) { c.waker.Objects(name) }
	c.worker.authors.returned = c.waker.Objects
	return errors.Join(mgr.Add(targets), mgr.Add(&c.engine.Watcher), mgr.Add(driverRunner(c.startDrivers)))
}

// changed wakes the component of a dependent that somebody else changed.
func (c *Controller[T]) changed(owner string, _ projection.Key) {
	id, _, _, _ := desired.ParseOwner(owner)
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
	if o.DependentEvents {
		needs = append(needs, loop.Need{
			GroupVersionKind: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"},
			Verbs:            []string{"create", "patch"}, ClusterWide: true,
		})
	}
	if slices.ContainsFunc(o.Kinds, func(k schema.GroupVersionKind) bool { return desired.IsScalable(k.GroupKind()) }) { // to see which objects an autoscaler scales
		needs = append(needs, loop.Need{
			GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
			Verbs:            []string{"list", "watch"}, ClusterWide: true,
		})
	}
	needs = append(needs, o.Inventory.needs()...)
	for _, kind := range o.Kinds {
		needs = append(needs, loop.Need{
			GroupVersionKind: kind, Verbs: []string{"get", "list", "watch", "create", "patch", "update", "delete"}, ClusterWide: true,
			Later: !clientgoscheme.Scheme.Recognizes(kind), // a dependent may define it
		})
		if kind.Kind == "CustomResourceDefinition" { // nobody may create objects of a type that is about to go
			for _, fence := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
				needs = append(needs, loop.Need{
					GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: fence},
					Verbs:            []string{"get", "create", "delete"}, ClusterWide: true,
				})
			}
			if o.ProtectDefinitions {
				needs = append(needs, o.shieldNeeds()...)
			}
		}
	}
	return needs
}

// shieldNeeds are the permissions to keep the policy that protects definitions up to date. Those to create and delete
// policies are there anyway.
func (o Options[T]) shieldNeeds() []loop.Need {
	var needs []loop.Need
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		needs = append(needs, loop.Need{
			GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind},
			Verbs:            []string{"get", "list", "patch", "watch"}, Names: []string{prune.ShieldName(o.Name)}, ClusterWide: true,
		})
	}
	return needs
}

// problem is what is wrong with the options.
func (o Options[T]) problem() error {
	if wrong := validation.IsDNS1123Subdomain(o.Name); len(wrong) > 0 {
		return fmt.Errorf("component: Options.Name %q must be a DNS name such as shop.example.org: %s", o.Name, strings.Join(wrong, "; "))
	}
	negative := func(name string, d time.Duration) error {
		if d < 0 {
			return fmt.Errorf("component: Options.%s %s is negative; leave it zero for the default", name, d)
		}
		return nil
	}
	return errors.Join(negative("RequeueInterval", o.RequeueInterval), negative("Timeout", o.Timeout),
		negative("WaveTimeout", o.WaveTimeout),
		negative("LastObservedAtEvery", o.LastObservedAtEvery), negative("CorrectInterval", o.CorrectInterval), o.wrongPolicies())
}

// wrongPolicies is what is wrong with the operator's own policies. Every component would fail because of them.
func (o Options[T]) wrongPolicies() error {
	p := o.policies()
	err := checkPolicies(p, o.Namespaces)
	if p.ConflictPolicy == api.ConflictPolicyFail && p.UpdatePolicy == api.UpdatePolicyReplace {
		err = errors.Join(err, fmt.Errorf("the conflict policy %q needs server-side apply; use the update policy %s or %s",
			p.ConflictPolicy, api.UpdatePolicySsaMerge, api.UpdatePolicySsaOverride))
	}
	if err != nil {
		return fmt.Errorf("component: the policies in the options: %w", err)
	}
	return nil
}

func (o Options[T]) requeue() time.Duration { return cmp.Or(o.RequeueInterval, 10*time.Minute) }
