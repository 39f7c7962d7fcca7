package component

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/api"
)

// Set is the dependents that a component is to have. The zero value is empty: it asks for none.
type Set struct{ dependents []*Dependent }

// Objects returns the set of these objects, typed or unstructured.
func Objects(objects ...client.Object) Set {
	var s Set
	for _, o := range objects {
		s.Add(o)
	}
	return s
}

// Add adds an object, typed or unstructured. Without a namespace it goes to that of the request. What is
// set on the returned Dependent has priority over annotations of the object.
func (s *Set) Add(obj client.Object) *Dependent {
	d := &Dependent{object: obj, settings: map[string]string{}}
	s.dependents = append(s.dependents, d)
	return d
}

// Dependent is an object of a [Set], and how it is treated. Each method sets what an annotation of the
// object can set, too, and returns the Dependent.
type Dependent struct {
	object   client.Object
	settings map[string]string
	after    []*Dependent
	// from is what the object is made from, by build; object is nil before.
	from  *Dependent
	build func(observed client.Object) (client.Object, error)
}

// From adds an object that is made from what is observed of another dependent: of an external resource, for
// example its address. That is n as it was when it was last ready, with its status. The object is added when n is
// ready for the first time, and applied after it; before that nothing is pruned. If build returns nil, there is
// no object. What build is given must not be secret: it comes from the status of the component.
//
// Only dependents with a driver can be observed, see [Options].Drivers; O is the type that was added.
func From[O client.Object](s *Set, n *Dependent, build func(observed O) client.Object) *Dependent {
	d := s.Add(nil).After(n)
	d.from = n
	d.build = func(observed client.Object) (client.Object, error) {
		o, ok := observed.(O)
		if !ok {
			return nil, fmt.Errorf("component.From: what is observed is a %T, not a %T", observed, o)
		}
		return build(o), nil
	}
	return d
}

// resolve makes the objects that are made from others, and returns the keys of those that were never ready.
func (s *Set) resolve(scheme *runtime.Scheme, namespace string, observed func(key string) (client.Object, error)) ([]string, error) {
	var unrendered []string
	for _, d := range s.dependents {
		if d.from == nil {
			continue
		}
		key, err := d.from.keyIn(scheme, namespace)
		if err != nil {
			return nil, err
		}
		o, err := observed(key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", key, err)
		case o == nil:
			unrendered = append(unrendered, key)
			continue
		}
		if d.object, err = d.build(o); err != nil {
			return nil, err
		}
	}
	slices.Sort(unrendered)
	return slices.Compact(unrendered), nil
}

// absent reports whether there is no object: it is not made yet, or build returned none.
func (d *Dependent) absent() bool {
	if d.from == nil {
		return false
	}
	v := reflect.ValueOf(d.object)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// After has the object applied when the others are ready, and deleted before them. The annotation is
// depends-on.
func (d *Dependent) After(others ...*Dependent) *Dependent {
	d.after = append(d.after, others...)
	return d
}

// Wave has the object applied when all objects of lower waves are ready. Without it the wave is 0. The
// annotation is apply-order.
func (d *Dependent) Wave(n int16) *Dependent { return d.order("apply-order", n) }

// PurgeAfter has the object deleted at the end of a wave. The annotation is purge-order.
func (d *Dependent) PurgeAfter(n int16) *Dependent { return d.order("purge-order", n) }

// DeleteWave has the object deleted when all objects of lower waves are gone. Without it the wave is 0.
// The annotation is delete-order.
func (d *Dependent) DeleteWave(n int16) *Dependent { return d.order("delete-order", n) }

// Timeout limits how long the object may take to become ready after it was applied: then the component's state
// is Error until it is. Without it only the timeouts of the wave and the component count. The annotation is
// timeout.
func (d *Dependent) Timeout(limit time.Duration) *Dependent {
	d.settings["timeout"] = limit.String()
	return d
}

func (d *Dependent) order(name string, n int16) *Dependent {
	d.settings[name] = strconv.Itoa(int(n))
	return d
}

// Policies sets policies of the object; those that are empty stay as they were.
func (d *Dependent) Policies(p api.Policies) *Dependent {
	for name, value := range map[string]string{
		"adoption-policy": string(p.AdoptionPolicy), "reconcile-policy": string(p.ReconcilePolicy),
		"update-policy": string(p.UpdatePolicy), "delete-policy": string(p.DeletePolicy),
		"conflict-policy": string(p.ConflictPolicy), "immutable-policy": string(p.ImmutablePolicy), "mode": string(p.Mode),
	} {
		if value != "" {
			d.settings[name] = value
		}
	}
	return d
}

// Annotated returns the objects as the operator of a name gets them: what was set on a [Dependent] is an
// annotation with that name as its prefix. Objects of which something was set are copies. The scheme names the
// kinds of typed objects that others come after.
func (s *Set) Annotated(operator string, scheme *runtime.Scheme) ([]client.Object, error) {
	out := make([]client.Object, 0, len(s.dependents))
	for i, d := range s.dependents {
		obj := d.object
		if d.absent() {
			continue
		}
		if obj == nil {
			return nil, fmt.Errorf("object %d of the set is nil; leave it out", i+1)
		}
		keys := make([]string, len(d.after))
		for n, other := range d.after {
			key, err := other.key(scheme)
			if err != nil {
				return nil, err
			}
			keys[n] = key
		}
		if len(keys) > 0 {
			slices.Sort(keys)
			d.settings["depends-on"] = strings.Join(slices.Compact(keys), ",")
		}
		if len(d.settings) > 0 {
			obj, _ = obj.DeepCopyObject().(client.Object)
			annotations := maps.Clone(obj.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			for name, value := range d.settings {
				annotations[operator+"/"+name] = value
			}
			obj.SetAnnotations(annotations)
		}
		out = append(out, obj)
	}
	return out, nil
}

// key names the object as the annotation depends-on does. In place of one that is not made yet it names what
// that is made from.
func (d *Dependent) key(scheme *runtime.Scheme) (string, error) { return d.keyIn(scheme, "") }

func (d *Dependent) keyIn(scheme *runtime.Scheme, namespace string) (string, error) {
	if d.absent() {
		return d.from.keyIn(scheme, namespace)
	}
	kind, err := apiutil.GVKForObject(d.object, scheme)
	if err != nil {
		return "", fmt.Errorf("%T %s: %w", d.object, d.object.GetName(), err)
	}
	return kind.Group + "/" + kind.Kind + "/" + cmp.Or(d.object.GetNamespace(), namespace) + "/" + d.object.GetName(), nil
}
