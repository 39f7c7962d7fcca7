package loop

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Options configure a [Controller]. The zero value suits most.
type Options[T client.Object] struct {
	// Name is the controller's name in logs, metrics and traces. Empty means the kind in
	// lower case.
	Name string

	// Finalizer is the finalizer's name. Empty means <plural>.<group>/finalizer. Kinds of Kubernetes without a group, such as
	// ConfigMap, need a name if the Reconciler is a [Cleaner].
	Finalizer string

	// NoFinalizer says that objects need no finalizer, whatever an earlier version of the operator did: the one that
	// Finalizer names is removed from objects that have it. Those of others stay. A Reconciler that has something to clean
	// up cannot have it: it is an error at the start. False means that objects have the finalizer if the Reconciler is a
	// [Cleaner], and that one which an earlier version left on objects stays there.
	NoFinalizer bool

	// Workers is the number of objects that are reconciled concurrently. Zero means 4.
	Workers int

	// Deadline is the time limit of a call of the Reconciler. Zero means 2 minutes. A write of the result may take a minute more.
	Deadline time.Duration

	// Retry is the policy after a failure. The zero value retries forever, with delays that grow from
	// one second to ten minutes.
	Retry Retry

	// MaxInterval is the longest time between two passes over an object, give or take 10 %. Zero means
	// 10 hours. A negative value means no limit.
	MaxInterval time.Duration

	// RateLimit limits how often one object is reconciled. The zero value sets no limit.
	RateLimit RateLimit

	// Generation says which updates of the object itself cause a pass.
	Generation GenerationMode

	// Revision identifies the code of the Reconciler, for example the version of the operator. If it is set, an object
	// whose last pass succeeded is not reconciled when the operator starts, unless the object or the Revision has
	// changed since. Its next pass comes some time within [Options.MaxInterval], or within the time that the last pass
	// asked for by [After]. Change Revision whenever objects have to be reconciled again, because nothing else tells.
	// Empty means that all objects are reconciled when the operator starts.
	//
	// It needs a kind with [api.Status] whose CRD has the field lastPass. A controller that looks at anything but its
	// object, by Sources or as an [Indexer], cannot have it: what happened while no operator ran would be missed.
	// Whoever may write the status of an object can put off its pass after a start, unless the cache keeps managedFields,
	// which that of operator.Main does not.
	Revision string

	// WakeOn are keys of annotations whose change causes a pass, besides trimtab's own.
	WakeOn []string

	// Sources are further causes of passes.
	Sources []trigger.Source[T]

	// Needs are the permissions that the author's code needs in addition to those of the loop and of
	// the sources. They become part of the generated role.
	Needs []Need

	// Problem is an error in the options that SetupWithManager and Needs return. It is for packages
	// that derive these options from their own. Nil means that there is none.
	Problem error

	// PlainClient has [Run.Client] be the manager's client, without its guarantees. It is for authors who follow their own
	// writes, as packages component and external do. False means that there are the guarantees.
	PlainClient bool

	// Trace receives the trace of all passes. Nil means the sink of the process under operator.Main,
	// and otherwise none.
	Trace trace.Sink
}

// RateLimit is how many passes over one object may begin within a time, whatever causes them. What comes meanwhile causes one
// pass at the end of it.
type RateLimit struct {
	// Passes is the number of passes. Zero means that there is no limit.
	Passes int
	// Per is the time. It is required if Passes is set.
	Per time.Duration
}

// GenerationMode says which updates of an object cause a pass. A new deletion timestamp, the removal of
// the controller's finalizer, and changes to the annotations in [Options.WakeOn] always do.
type GenerationMode int

const (
	// GenerationAware means a change of the generation, that is, of the spec. For kinds without generations, such as
	// ConfigMap, it means a change of anything but metadata and status. A status that another client sets back to an
	// earlier appliedGeneration causes a pass, too.
	GenerationAware GenerationMode = iota
	// EveryChange means any update, including those of labels, annotations and status.
	EveryChange
	// ObservedGeneration is like GenerationAware. In addition, the loop sets status.observedGeneration of a kind that
	// has this field but not [api.Status]. It does so after each pass that succeeded and whose status is written, as the
	// Java Operator SDK did before version 5. It is not for kinds whose status belongs to another controller, such as
	// Deployment. Without the field it is GenerationAware, which is logged at the start.
	ObservedGeneration
	// SpecOnly is like GenerationAware, but whatever the status says causes no pass. Packages external and component have
	// it, whose passes do not go by the status.
	SpecOnly
)

// Need is a permission on one kind.
type Need struct {
	schema.GroupVersionKind
	// Resource is the name of the kind in roles and URLs, such as "gateways". Empty means the one in the operator's CRDs,
	// or else the plural of the kind by the rules of English.
	Resource string
	// Subresource is empty for the object itself.
	Subresource string
	// Verbs are those of RBAC: get, list, watch, create, update, patch, delete.
	Verbs []string
	// Names restricts the permission to the objects with these names. Empty means all objects.
	Names []string
	// ClusterWide grants the permission in the whole cluster even if the operator watches only some
	// namespaces. Cluster-scoped kinds need it.
	ClusterWide bool
	// Later says that the cluster may serve the kind only after the operator has started, or never. Otherwise, the operator
	// does not start without it.
	Later bool
}

// Terms are settings that apply to all controllers of an operator. Whoever runs the operator sets
// them, usually by flags. The zero value sets no limits.
type Terms struct {
	// Installation distinguishes operators of the same kinds in one cluster. Empty means that
	// there is one.
	Installation string
	// Adoption is the most permissive effective value of the annotation trimtab.dev/adoption.
	Adoption Limit
	// Access is the most permissive effective value of the annotation trimtab.dev/access-permissions.
	Access Limit
	// Namespaces are the namespaces whose objects are watched. Empty means all namespaces.
	Namespaces []string
}

// Watches reports whether objects in namespace are watched. Cluster-scoped objects, for which namespace
// is empty, are always watched.
func (t Terms) Watches(namespace string) bool {
	return namespace == "" || len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, namespace)
}

// Limit maps namespaces to values. The value for "" applies to all other namespaces and to cluster-scoped
// kinds.
type Limit map[string]string

// In returns the value for namespace. It is empty if there is none.
func (l Limit) In(namespace string) string {
	if v, ok := l[namespace]; ok {
		return v
	}
	return l[""]
}
