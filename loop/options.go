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

	// Retry is the policy after a failure. The zero value retries without end, after one second
	// at first and ten minutes at most.
	Retry Retry

	// MaxInterval is the longest time between two passes over an object, give or take a tenth.
	// Zero means 10 hours; less than zero means no limit.
	MaxInterval time.Duration

	// Generation says which updates of the object itself cause a pass.
	Generation GenerationMode

	// WakeOn are keys of annotations whose change causes a pass, besides trimtab's own.
	WakeOn []string

	// Sources are what else causes passes.
	Sources []trigger.Source[T]

	// Needs are the permissions that the author's code needs besides those of the loop and of the
	// sources. They go into the generated role.
	Needs []Need

	// Problem makes the options unusable: SetupWithManager and Needs return it. It is for packages
	// that derive these options from their own.
	Problem error

	// Trace receives the trace of all passes. Nil drops it; under operator.Main it means the
	// sink of the process.
	Trace trace.Sink
}

// GenerationMode says which updates of an object cause a pass. The deletion timestamp, the loss of our
// finalizer and a change of the annotations in [Options.WakeOn] always do.
type GenerationMode int

const (
	// GenerationAware is for a change of the generation alone: a new spec.
	GenerationAware GenerationMode = iota
	// EveryChange is for any update, also of labels, annotations and status.
	EveryChange
)

// Need is a permission on one kind.
type Need struct {
	schema.GroupVersionKind
	// Subresource is empty for the object itself.
	Subresource string
	// Verbs are those of RBAC: get, list, watch, create, update, patch, delete.
	Verbs []string
	// Names restrict the permission to objects of these names. None means all objects.
	Names []string
	// ClusterWide permissions are granted for the whole cluster even if the operator watches some
	// namespaces only. Kinds without a namespace need it.
	ClusterWide bool
}

// Terms are settings that apply to all controllers of an operator. Whoever runs the operator gives
// them, usually by flags. The zero value sets no limits.
type Terms struct {
	// Installation distinguishes operators of the same kinds in one cluster. Empty means that
	// there is one.
	Installation string
	// Adoption is the most that the annotation trimtab.dev/adoption can allow.
	Adoption Limit
	// Access is the most that the annotation trimtab.dev/access-permissions can allow.
	Access Limit
	// Namespaces are those whose objects are watched. None means all of them.
	Namespaces []string
}

// Watches reports whether objects in a namespace are watched. Objects without a namespace, which is
// then empty, always are.
func (t Terms) Watches(namespace string) bool {
	return namespace == "" || len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, namespace)
}

// Limit maps namespaces to values. The value of "" is for all other namespaces, and for kinds without
// one.
type Limit map[string]string

// In returns the value for a namespace, empty if there is none.
func (l Limit) In(namespace string) string {
	if v, ok := l[namespace]; ok {
		return v
	}
	return l[""]
}
