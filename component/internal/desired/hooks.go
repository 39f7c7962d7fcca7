package desired

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// The events on which a hook is applied, as values of the annotation of [EventKey].
const (
	PreDelete  = "pre-delete"
	PostDelete = "post-delete"
)

// EventKey is the annotation of hooks: objects that are applied only on an event. It stays in their manifest, so that
// none is taken for a dependent with the same content.
func EventKey(name string) string { return name + "/" + applyOn }

// Split returns the hooks among what a renderer returned, as JSON knows them, and everything else.
func Split(objects []client.Object, name string, scheme *runtime.Scheme) (hooks []*unstructured.Unstructured, others []client.Object, err error) {
	var p problems
	for i, obj := range objects {
		if IsNil(obj) || strings.TrimSpace(obj.GetAnnotations()[EventKey(name)]) == "" {
			others = append(others, obj)
			continue
		}
		content, err := guard.Call(fmt.Sprintf("%T", obj), "MarshalJSON", func() (map[string]any, error) { return contentOf(obj, scheme) })
		if err != nil {
			p.add("%s (%T): %w", place(i), obj, err)
			continue
		}
		hooks = append(hooks, &unstructured.Unstructured{Object: content})
	}
	return hooks, others, p.join()
}

// IsNil reports whether an object is nil, or a nil pointer.
func IsNil(obj client.Object) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// checkEvent refuses an event that is none, and a hook that nobody would apply.
func (s *set) checkEvent(d *draft, event string) {
	switch {
	case event != PreDelete && event != PostDelete:
		s.add("%s: annotation %s is %q; it must be %s", d.title(), EventKey(s.Name), event, alternatives([]string{PreDelete, PostDelete}))
	case !s.Hooks:
		s.add("%s: annotation %s is not possible in a list; return the object by itself", d.title(), EventKey(s.Name))
	}
}
