package engine

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
)

type objectKey = types.NamespacedName

// dependencyKind is a kind that objects of kind Object may need.
type dependencyKind struct {
	to client.Object
	// facts is what was learned about the kind when its objects were read.
	facts *kindFacts
}

// kindFacts is what the dependents of a kind have shown about it. It is noted before an object is
// read, so that whoever has read one is woken by its next change.
type kindFacts struct {
	// gvk is the kind's name; nil until an object is read.
	gvk atomic.Pointer[schema.GroupVersionKind]
	// judged reports whether some objects are judged by more than what package health says of them.
	judged atomic.Bool
}

// namedByEmpty asks the driver what an empty object depends on, to learn the kinds. A driver that
// cannot answer for an empty object names its kinds in [Options.DependencyKinds].
func (e *Engine) namedByEmpty() ([]dependencyKind, error) {
	named, err := e.dependsOn(e.driver.New())
	if err != nil {
		return nil, err
	}
	kinds := make([]dependencyKind, 0, len(named))
	for _, n := range named {
		kinds = append(kinds, dependencyKind{to: n.To, facts: &kindFacts{}})
	}
	return kinds, nil
}

func unique(kinds []dependencyKind) []dependencyKind {
	var out []dependencyKind
	for _, k := range kinds {
		if !slices.ContainsFunc(out, func(o dependencyKind) bool { return o.is(k.to) }) {
			out = append(out, k)
		}
	}
	return out
}

// is reports whether to is of this kind.
func (k dependencyKind) is(to client.Object) bool {
	if u, ok := to.(*unstructured.Unstructured); ok {
		o, ok := k.to.(*unstructured.Unstructured)
		return ok && o.GroupVersionKind() == u.GroupVersionKind()
	}
	return reflect.TypeOf(k.to) == reflect.TypeOf(to)
}

// dependsOn asks the driver what obj, a copy for the driver, depends on.
func (e *Engine) dependsOn(obj Object) ([]Dependency, error) {
	return pure(&e.abandoned, subjectOf(obj), "DependsOn", func() ([]Dependency, error) {
		return slices.Clone(e.driver.DependsOn(obj)), nil
	})
}

// names returns the keys of the objects of this kind that obj needs. If the driver does not say,
// names panics, and package loop wakes obj by all of them. Whether the kind is namespaced is not
// known here, so a dependency without a namespace is also listed under its bare name.
func (e *Engine) names(k dependencyKind, obj Object) []objectKey {
	copied, _ := obj.DeepCopyObject().(Object)
	named, err := e.dependsOn(copied)
	if err != nil {
		panic(fmt.Errorf("cannot tell what %s depends on: %w", client.ObjectKeyFromObject(obj), err))
	}
	var keys []objectKey
	for _, n := range named {
		if k.is(n.To) && n.Name != "" {
			keys = append(keys, n.key(obj))
			if n.Namespace == "" && obj.GetNamespace() != "" {
				keys = append(keys, objectKey{Name: n.Name})
			}
		}
	}
	return keys
}

func (d Dependency) key(of client.Object) objectKey {
	if d.Namespace == "" {
		return objectKey{Namespace: of.GetNamespace(), Name: d.Name}
	}
	return objectKey{Namespace: d.Namespace, Name: d.Name}
}

// needs are the dependencies of an object.
type needs struct {
	// found has those that exist, ready or not, by role.
	found map[string]client.Object
	// waiting are those that the object must wait for.
	waiting []loop.Dep
	// owner is the one that owns the object; nil if none does, or it does not exist.
	owner client.Object
}

// needsOf looks for what an object needs. It reads only the cache.
func (e *Engine) needsOf(ctx context.Context, r Run, obj Object) (needs, error) {
	var n needs
	if e.driver.DependsOn == nil {
		return n, nil
	}
	named, err := e.dependsOn(obj)
	if err != nil {
		return n, err
	}
	roles, err := e.roles(r.Client(), named)
	if err != nil {
		return n, err
	}
	n.found = make(map[string]client.Object, len(named))
	for i, d := range named {
		key := d.key(obj)
		if namespaced, err := r.Client().IsObjectNamespaced(d.To); err == nil && !namespaced {
			key.Namespace = ""
		}
		to, why, err := e.look(ctx, r, obj, d, key)
		if err != nil {
			return n, err
		}
		kind := kindOf(r.Client(), d.To)
		if why != "" {
			n.waiting = append(n.waiting, loop.Dep{Kind: kind, Namespace: key.Namespace, Name: key.Name, Why: why})
		}
		if to == nil {
			continue
		}
		n.found[roles[i]] = to
		if d.Owner && to.GetDeletionTimestamp().IsZero() {
			n.owner = to
		}
	}
	return n, nil
}

// roles returns the role of each dependency.
func (e *Engine) roles(k client.Client, named []Dependency) ([]string, error) {
	roles, owners := make([]string, len(named)), 0
	same := map[string]int{}
	for i, d := range named {
		if roles[i] = d.Role; d.Role == "" {
			roles[i] = strings.ToLower(kindOf(k, d.To))
		}
		if same[roles[i]]++; d.Owner {
			owners++
		}
	}
	if owners > 1 {
		return nil, fmt.Errorf("%s.DependsOn returns %d owners; an object can have one", e.driver.Type, owners)
	}
	for i, d := range named {
		switch {
		case same[roles[i]] == 1:
		case d.Role != "":
			return nil, fmt.Errorf("%s.DependsOn returns several dependencies with the role %q; give each its own Role", e.driver.Type, d.Role)
		default:
			roles[i] += "/" + d.Name
		}
	}
	return roles, nil
}

// own makes the object belong to owner, so that it is deleted with it. That becomes durable with the next write of the pass.
func (e *Engine) own(k client.Client, obj Object, owner client.Object) error {
	refers := func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }
	if owner == nil || e.unlocked || slices.ContainsFunc(obj.GetOwnerReferences(), refers) { // the objects of nodes belong to their component
		return nil
	}
	if err := controllerutil.SetOwnerReference(owner, obj, k.Scheme()); err != nil {
		return fmt.Errorf("make %s %s the owner, which %s.DependsOn asks for: %w", kindOf(k, owner), client.ObjectKeyFromObject(owner), e.driver.Type, err)
	}
	return nil
}

// look returns a dependency, nil if it does not exist, and what it lacks; empty if it is ready.
func (e *Engine) look(ctx context.Context, r Run, obj Object, d Dependency, key objectKey) (to client.Object, lacks string, err error) {
	i := slices.IndexFunc(e.dependencies, func(kind dependencyKind) bool { return kind.is(d.To) })
	switch {
	case i < 0:
		return nil, "", fmt.Errorf("%T depends on a %T, which is not watched; add it to Options.DependencyKinds", obj, d.To)
	case d.Name == "":
		return nil, "is not named", nil
	case !r.Terms().Watches(key.Namespace): // reading it from the cache would fail
		return nil, fmt.Sprintf("is in namespace %[1]s, which this operator does not watch; add %[1]s to --watch-namespaces", key.Namespace), nil
	}
	gvk, err := r.Client().GroupVersionKindFor(d.To)
	if err != nil {
		return nil, "", fmt.Errorf("tell the kind of a %T: %w", d.To, err)
	}
	e.dependencies[i].facts.learn(d, gvk)
	to, _ = d.To.DeepCopyObject().(client.Object)
	err = r.Client().Get(ctx, key, to)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "does not exist", nil
	case err != nil:
		return nil, "", fmt.Errorf("read %s %s: %w", gvk.Kind, key, err)
	case to.GetUID() == obj.GetUID():
		return nil, "is this object, which cannot depend on itself", nil
	case !to.GetDeletionTimestamp().IsZero():
		return to, "is being deleted", nil
	case !obj.GetDeletionTimestamp().IsZero(): // whether it is ready does not matter any more
		return to, "", nil
	}
	lacks, err = e.lacking(ctx, r, obj, d, to, gvk)
	return to, lacks, err
}

// lacking says what an existing dependency lacks; empty if it is ready.
func (e *Engine) lacking(ctx context.Context, r Run, obj Object, d Dependency, to client.Object, gvk schema.GroupVersionKind) (string, error) {
	if d.Ready != nil {
		return e.judged(obj, d, to)
	}
	if o, ours := to.(statusObject); ours && d.Current && !isCurrent(o) {
		return health.NotReady, nil
	}
	why := health.Lacking(to, gvk)
	if why != "" && ownRecord(obj).Progress() != record.MarkerNone { // an existing resource does not depend on the newest spec of another object
		why = health.Lacking(health.AsReported(to), gvk)
	}
	if why != "" {
		return why, nil
	}
	if believed, err := e.isReadyVerified(ctx, r.Live(), to); err != nil || !believed {
		return decide.Unverified, err
	}
	return "", nil
}

// isCurrent reports whether an object matches its own current spec, and nothing about it has failed.
func isCurrent(o statusObject) bool {
	ready := meta.FindStatusCondition(o.TrimtabStatus().Conditions, api.ConditionReady)
	return ready != nil && ready.ObservedGeneration == o.GetGeneration() &&
		!meta.IsStatusConditionTrue(o.TrimtabStatus().Conditions, api.ConditionFailed)
}

// judged asks the driver what a dependency lacks.
func (e *Engine) judged(obj Object, d Dependency, to client.Object) (string, error) {
	return pure(&e.abandoned, subjectOf(obj), "Dependency.Ready", func() (string, error) {
		ready, why := d.Ready(to)
		if ready {
			return "", nil
		}
		return cmp.Or(plain.Text(why), health.NotReady), nil
	})
}

// learn notes that an object of the kind is read as d.
func (a *kindFacts) learn(d Dependency, gvk schema.GroupVersionKind) {
	if a.gvk.Load() == nil {
		a.gvk.Store(&gvk)
	}
	if d.Ready != nil || d.Current {
		a.judged.Store(true)
	}
}

func kindOf(k client.Client, obj client.Object) string {
	if gvk, err := k.GroupVersionKindFor(obj); err == nil {
		return gvk.Kind
	}
	return reflect.TypeOf(obj).Elem().Name()
}

// isReadyVerified reports whether condition Ready of a dependency was written by its operator, and not by
// somebody else who may write status. It is true for kinds that trimtab does not manage.
func (e *Engine) isReadyVerified(ctx context.Context, live client.Reader, to client.Object) (bool, error) {
	o, ours := to.(statusObject)
	if !ours {
		return true, nil
	}
	version := to.GetResourceVersion()
	if e.verified.has(to.GetUID(), version) {
		return true, nil
	}
	c, err := e.ownReady(ctx, live, o)
	if err != nil || c == nil || c.Status != metav1.ConditionTrue {
		return false, err
	}
	e.verified.add(to.GetUID(), version)
	return true, nil
}

// changed reports whether an update of an object of the kind can matter. Any update may matter to
// a Ready function, and, until the kind's name is known, to kstatus.
func (k dependencyKind) changed(before, after client.Object) bool {
	if k.facts.judged.Load() {
		return true
	}
	var gvk schema.GroupVersionKind
	if known := k.facts.gvk.Load(); known != nil {
		gvk = *known
	} else if _, ours := after.(api.Object); !ours {
		return true
	}
	return health.Changed(before, after, gvk)
}
