package loop

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// What is different in the status of components is here.

// locked reports whether a status is written only if it is as it was read. That of a component contains its
// inventory: what another process recorded, such as the next leader, must not be lost.
func locked(obj client.Object) bool {
	_, is := obj.(api.ComponentObject)
	return is
}

// samePrivate reports whether two versions of a component have the same status but for what every kind has.
func samePrivate(a, b client.Object) bool {
	one, first := a.(api.ComponentObject)
	two, second := b.(api.ComponentObject)
	if !first || !second {
		return false
	}
	x, y := one.GetStatus().DeepCopy(), two.GetStatus().DeepCopy()
	x.Status, y.Status = api.Status{}, api.Status{}
	return equality.Semantic.DeepEqual(x, y)
}

// stamp notes in the status of a component when it is written.
func stamp(obj client.Object) {
	o, ok := obj.(api.ComponentObject)
	if !ok {
		return
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	if s := o.GetStatus(); s.LastObservedAt == nil || s.LastObservedAt.Before(&now) {
		s.LastObservedAt = &now
	}
}

// stateOf is the name that an object's kind has for one of the loop's own states. Components have the
// states of component-operator-runtime and no others.
func stateOf(obj client.Object, state string) string {
	if _, ok := obj.(api.ComponentObject); !ok {
		return state
	}
	switch state {
	case stateFailed:
		return "Error"
	case stateTerminating:
		return "Deleting"
	case stateReconciling:
		return "Processing"
	case stateSucceeded:
		return "Ready"
	}
	return state
}
