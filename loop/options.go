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

	// Finalizer is the finalizer's name. Empty means <plural>.<group>/finalizer.
	Finalizer string

	// Workers is the number of objects that are reconciled concurrently. Zero means 4.
	Workers int

	// Deadline is the time limit of a pass. Zero means 2 minutes.
	Deadline time.Duration

	// Retry is the policy after a failure. The zero value retries forever, after one second at first
	// and after at most ten minutes.
	Retry Retry

	// MaxInterval is the longest time between two passes over an object, give or take 10 %. Zero means
	// 10 hours. A negative value means no limit.
	MaxInterval time.Duration

	// Generation says which updates of the object itself cause a pass.
	Generation GenerationMode

	// WakeOn are keys of annotations whose change causes a pass, besides trimtab's own.
	WakeOn []string

	// Sources are further causes of passes.
	Sources []trigger.Source[T]

	// Needs are the permissions that the author's code needs in addition to those of the loop and of
	// the sources. They become part of the generated role.
	Needs []Need

	// Problem makes the options unusable: SetupWithManager and Needs return it. It is for packages
	// that derive these options from their own.
	Problem error

	// Trace receives the trace of all passes. Nil means the sink of the process under operator.Main,
	// and otherwise none.
	Trace trace.Sink
}

// GenerationMode says which updates of an object cause a pass. A new deletion timestamp, the loss of our
// finalizer and changes of the annotations in [Options.WakeOn] always do.
type GenerationMode int

const (
	// GenerationAware means only a change of the generation, that is, of the spec.
	GenerationAware GenerationMode = iota
	// EveryChange means any update, including those of labels, annotations and status.
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
