package engine

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// setAnnotation sets an annotation, and reports whether it had another value.
func setAnnotation(is outlet, key, value string) bool {
	annotations := is.GetAnnotations()
	if annotations[key] == value {
		return false
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	is.SetAnnotations(annotations)
	return true
}

// outlet is a Secret or ConfigMap in which users see connection details.
type outlet struct {
	client.Object

	secret *corev1.Secret
	config *corev1.ConfigMap
}

func newOutlet(kind string) outlet {
	if kind == "Secret" {
		s := &corev1.Secret{}
		return outlet{Object: s, secret: s}
	}
	m := &corev1.ConfigMap{}
	return outlet{Object: m, config: m}
}

func (o outlet) get(key string) []byte {
	if o.secret != nil {
		return o.secret.Data[key]
	}
	return []byte(o.config.Data[key])
}

// set sets the value of a key, and reports whether it was another one.
func (o outlet) set(key string, value []byte) bool {
	if string(o.get(key)) == string(value) {
		return false
	}
	switch {
	case o.secret != nil && o.secret.Data == nil:
		o.secret.Data = map[string][]byte{}
	case o.config != nil && o.config.Data == nil:
		o.config.Data = map[string]string{}
	}
	if o.secret != nil {
		o.secret.Data[key] = value
	} else {
		o.config.Data[key] = string(value)
	}
	return true
}

// drop removes a key.
func (o outlet) drop(key string) {
	if o.secret != nil {
		delete(o.secret.Data, key)
	}
}

// OutputKind returns the kind of the objects in which users see connection details, and which ones belong to an object;
// nil if there are none.
func (e *Engine) OutputKind() *DependencyKind {
	if e.driver.Connection == nil {
		return nil
	}
	empty, err := guarded("Connection", func() (Connection, error) { return e.driver.Connection(e.driver.New()), nil })
	if err != nil || empty.To == nil {
		e.problem = fmt.Errorf("tell where a %s publishes connection details: %w; let Connection return a reference for an empty object", e.driver.Type, errors.Join(err, errNoReference))
		return nil
	}
	if len(empty.Passwords) > 0 && e.driver.Update == nil {
		e.problem = fmt.Errorf("a %s has passwords and no Update, which a changed password needs", e.driver.Type)
	}
	return &DependencyKind{To: metadataOf(kindOfReference(empty.To)), Names: func(obj Object) []types.NamespacedName {
		c := e.driver.Connection(copyOf(obj))
		if len(filled([]api.Reference{c.To})) == 0 {
			return nil
		}
		_, name := c.To.Refers()
		key := objectKey{Namespace: obj.GetNamespace(), Name: name}
		if key.Namespace == "" {
			key.Namespace = c.Namespace
		}
		return []objectKey{key}
	}}
}

var errNoReference = errors.New("it returns none")
