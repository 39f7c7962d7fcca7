package loop

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Options tune a [Controller]. The zero value is right for most.
type Options[T client.Object] struct {
	// Name is the controller's name in logs, metrics and traces. Empty means the kind in
	// lower case.
	Name string

	// Finalizer is the finalizer's name. Empty means <plural>.<group>/finalizer.
	Finalizer string

	// Workers is how many objects are worked on at a time. Zero means 4.
	Workers int

	// Deadline bounds one pass. Zero means 2 minutes.
	Deadline time.Duration

	// Retry is what happens after a failure. The zero value retries for ever, from one
	// second to ten minutes.
	Retry Retry

	// MaxInterval is how long an object may go unvisited, give or take a tenth. Zero means
	// 10 hours; less than zero switches the visit off.
	MaxInterval time.Duration

	// Generation says when an update of the object itself counts as news.
	Generation GenerationMode

	// WakeOn names annotations whose change wakes the loop, besides trimtab's own.
	WakeOn []string

	// Sources are what else wakes the loop.
	Sources []trigger.Source[T]

	// Needs are permissions that the author's code uses beyond what the loop and its
	// sources need; they go into the generated role.
	Needs []Need

	// Problem is what makes the options unusable, from a package that makes them of others; the
	// controller's SetupWithManager and Needs return it.
	Problem error

	// Trace receives what happens. Nil drops it, or takes the process's own when the
	// controller runs under operator.Main.
	Trace trace.Sink
}

// GenerationMode says which updates of an object wake its controller. The deletion mark,
// a lost finalizer and the annotations of [Options.WakeOn] always do.
type GenerationMode int

const (
	// GenerationAware wakes on a new generation alone: a change of spec.
	GenerationAware GenerationMode = iota
	// EveryChange also wakes on labels, annotations and status that others change.
	EveryChange
)

// Need is a permission on one kind.
type Need struct {
	schema.GroupVersionKind
	// Subresource is empty for the object itself.
	Subresource string
	// Verbs in the terms of RBAC: get, list, watch, create, update, patch, delete.
	Verbs []string
	// Names are the objects that are meant. None means all of them.
	Names []string
	// ClusterWide needs are granted for the whole cluster, also to an operator that works in
	// some namespaces only: those on kinds without a namespace.
	ClusterWide bool
}

// Terms are what the one who runs an operator decides for all of its controllers. The zero
// value decides nothing.
type Terms struct {
	// Installation tells operators of the same kinds in one cluster apart. Empty means that
	// there is one.
	Installation string
	// Adoption is the most that annotation trimtab.dev/adoption may ask for.
	Adoption Limit
	// Access is the most that annotation trimtab.dev/access-permissions may ask for.
	Access Limit
	// Namespaces are those whose objects are watched. None means all of them.
	Namespaces []string
}

// Watches tells whether objects in a namespace are watched; those without one, whose namespace
// is empty, always are.
func (t Terms) Watches(namespace string) bool {
	return namespace == "" || len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, namespace)
}

// Limit is a value for each namespace; the one of "" is for those that are not named, and
// for kinds that have none.
type Limit map[string]string

// In returns the value for a namespace, empty if nothing was decided.
func (l Limit) In(namespace string) string {
	if v, ok := l[namespace]; ok {
		return v
	}
	return l[""]
}
