package component

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scheme returns a scheme with the types of the manager's and those that renderers add. The manager's own
// is not changed.
func (w *worker[T]) scheme(managers *runtime.Scheme) (*runtime.Scheme, error) {
	builders := []SchemeBuilder{w.options.Scheme}
	if b, ok := w.renderer.(SchemeBuilder); ok {
		builders = append(builders, b)
	}
	s := runtime.NewScheme()
	for kind, t := range managers.AllKnownTypes() {
		if obj, ok := reflect.TypeAssert[client.Object](reflect.New(t)); ok {
			s.AddKnownTypeWithName(kind, obj)
		}
	}
	var problems []error
	for _, b := range builders {
		if b == nil {
			continue
		}
		if err := b.AddToScheme(s); err != nil {
			problems = append(problems, fmt.Errorf("component: add to the scheme of dependents: %w", err))
		}
	}
	return s, errors.Join(problems...)
}
