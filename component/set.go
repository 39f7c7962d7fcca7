package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

// Set is the set of dependents that a component should have. The zero value is empty.
type Set struct{ dependents []*Dependent }

// Objects returns the set of these objects, typed or unstructured.
func Objects(objects ...client.Object) Set {
	var s Set
	for _, o := range objects {
		s.Add(o)
	}
	return s
}

// Add adds an object, typed or unstructured. Its namespace defaults to that of the request. Settings of the
// returned Dependent have priority over annotations of the object.
func (s *Set) Add(obj client.Object) *Dependent {
	d := &Dependent{object: obj, settings: map[string]string{}}
	s.dependents = append(s.dependents, d)
	return d
}

// Dependent is an object of a [Set] with its settings. Each method is equivalent to an annotation of the
// object, and returns the Dependent.
type Dependent struct {
	object   client.Object
	settings map[string]string
	after    []*Dependent
	// from is what the object is made from, by build; object is nil before.
	from  *Dependent
	build func(observed client.Object) (client.Object, error)
}

// From adds an object that is built from the observed state of n, for example from the address of an external
// resource. build gets n, with its status, as it was when it was last ready. The object is added when n is
// ready for the first time, and is applied after n. Nothing is pruned before that. If build returns nil, no
// object is added. The observed state is stored in the component's status, so it must not contain secrets.
//
// n must have a driver; see [Options].Drivers. O is the type that was added.
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
	return desired.IsNil(d.object)
}

// After applies the object when the others are ready, and deletes it before them. The annotation is
// depends-on.
func (d *Dependent) After(others ...*Dependent) *Dependent {
	d.after = append(d.after, others...)
	return d
}

// Wave applies the object when all objects of lower waves are ready. The default is 0. The annotation is
// apply-order.
func (d *Dependent) Wave(n int16) *Dependent { return d.order("apply-order", n) }

// PurgeAfter deletes the object at the end of a wave. The annotation is purge-order.
func (d *Dependent) PurgeAfter(n int16) *Dependent { return d.order("purge-order", n) }

// DeleteWave deletes the object when all objects of lower delete waves are gone. The default is 0. The
// annotation is delete-order.
func (d *Dependent) DeleteWave(n int16) *Dependent { return d.order("delete-order", n) }

// PreDelete applies the object only when the component is deleted, before any dependent is deleted. The deletion
// waits until the object is ready: a Job has completed, a Pod has succeeded. Such objects are applied in waves of
// their own, and deleted with the component. They are stored in the Secret "<name>-delete-hooks", because a
// deletion renders nothing; if [Options].Kinds are set, they must contain Secret. A dependent may have the same
// kind and name: it becomes the hook. The annotation is apply-on: pre-delete.
func (d *Dependent) PreDelete() *Dependent { return d.on(desired.PreDelete) }

// PostDelete is like [Dependent.PreDelete], but applies the object after all dependents are deleted. The
// annotation is apply-on: post-delete.
func (d *Dependent) PostDelete() *Dependent { return d.on(desired.PostDelete) }

func (d *Dependent) on(event string) *Dependent {
	d.settings["apply-on"] = event
	return d
}

// Timeout is the time in which the object must become ready after it was applied. After that, the component's
// state is Error until the object is ready. By default, only the timeouts of the wave and of the component
// apply. The annotation is timeout.
func (d *Dependent) Timeout(limit time.Duration) *Dependent {
	d.settings["timeout"] = limit.String()
	return d
}

// Uncounted has the object left out when it is counted whether a component loses too many dependents; see
// [Options].PruneLimit. It is for what a component gains at the same time: that makes up for nothing. The annotation is
// uncounted: "true".
func (d *Dependent) Uncounted() *Dependent {
	d.settings["uncounted"] = "true"
	return d
}

func (d *Dependent) order(name string, n int16) *Dependent {
	d.settings[name] = strconv.Itoa(int(n))
	return d
}

// Policies sets the policies of the object that are not empty in p.
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

// Annotated returns the objects with the settings of each [Dependent] as annotations, whose prefix is the
// operator's name. Objects with settings are copied. The scheme must know the types of objects that others
// come after.
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
