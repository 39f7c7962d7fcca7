package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
	"github.com/trimtab-dev/trimtab/loop"
)

type ref = apply.Ref

func refOf(m *unstructured.Unstructured) ref { return apply.RefOf(m) }

// pass applies the children of one owner.
type pass[T client.Object] struct {
	*wiring[T]

	run    *loop.Run[T]
	owner  owning
	wanted map[ref]bool
	// claims are the objects for whose end the owner waits.
	claims map[ref]bool
	// unsure: it is not known which objects are wanted.
	unsure   bool
	problems []error
	res      Result
}

// soon is when a pass is repeated that met something which the cache does not show yet.
const soon = 100 * time.Millisecond

// apply brings one child to its manifest.
func (p *pass[T]) apply(ctx context.Context, c Child[T], m *unstructured.Unstructured) {
	r := refOf(m)
	live, err := p.observe(ctx, p.kind(c), r)
	if err == nil && live == nil {
		if live, err = p.write(r, nil, m, false, func() (*unstructured.Unstructured, error) { return p.client.Create(ctx, m) }); errors.Is(err, apply.ErrExists) {
			live, err = p.client.Get(ctx, r) // the cache does not show it yet, or never will
			if err == nil {
				live, err = p.bring(ctx, c, m, live)
			}
		}
	} else if err == nil {
		live, err = p.bring(ctx, c, m, live)
	}
	switch {
	case errors.Is(err, errWaits): // said already
	case errors.Is(err, apply.ErrReplaced), apierrors.IsNotFound(err) && !apply.MissingNamespace(err) && !apply.Unserved(err):
		p.repeat(soon)
	case err != nil:
		p.fail("ChildNotApplied", fmt.Errorf("apply child %q, %s: %w", c.name, r, err))
	default:
		p.lacking(r, live)
	}
}

// claim notes that the owner waits for the end of an object.
func (p *pass[T]) claim(r ref) {
	p.claims[r] = true
	p.memory.claim(r, p.owner)
}

// errWaits is the error of a child about which all is said.
var errWaits = errors.New("waits")

// observe returns an object as the cache has it, or as this process wrote it if that is newer. It returns nil if there
// is none.
func (p *pass[T]) observe(ctx context.Context, k kind, r ref) (*unstructured.Unstructured, error) {
	obj, ok := k.empty.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", k.empty)
	}
	err := p.cache.Get(ctx, r.NamespacedName, obj, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return p.memory.newer(r, nil), nil
	case err != nil:
		return nil, err
	}
	if newer := p.memory.newer(r, obj); newer != nil {
		return newer, nil
	}
	if p.memory.gone(obj.GetUID()) {
		return nil, nil
	}
	return untyped(obj, k)
}

// untyped returns an object from the cache as decoded from JSON.
func untyped(obj client.Object, k kind) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(k.gvk)
	return u, nil
}

// bring changes an object that exists, if it has to be changed.
func (p *pass[T]) bring(ctx context.Context, c Child[T], m, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	r := refOf(m)
	whose, why := judge(p.names.claims(live, p.owner, c.adoption))
	if whose == theirs {
		p.claim(r)
		p.fail("ChildNotOurs", fmt.Errorf("child %q: %s %s: %s", c.name, r, why, wayOut(c.adoption)))
		return nil, errWaits
	}
	if deleting := live.GetDeletionTimestamp() != nil; deleting && (whose != ours || !holds(live, p.names.finalizer())) {
		p.claim(r)
		p.wait(r, "is being deleted and is then created again")
		return nil, errWaits
	} else if deleting { // no finalizer can be added to it, and ours is on it
		m.SetFinalizers(live.GetFinalizers())
	}
	known, ok := p.memory.known(r, live.GetUID())
	if whose == ours && p.same(known, ok, m, live) {
		return live, nil
	}
	repair := whose == ours && ok && known.digest == m.GetAnnotations()[p.names.digest()]
	if wait := known.rest(time.Now()); repair && wait > 0 {
		p.repeat(wait)
		return live, nil
	}
	if whose == seized {
		var err error
		if live, err = p.seize(ctx, r, live); err != nil {
			return nil, err
		}
	}
	return p.write(r, live, m, repair, func() (*unstructured.Unstructured, error) {
		return p.client.Apply(ctx, m, apply.Options{UID: live.GetUID(), Adopt: whose != ours})
	})
}

// same reports whether an object is known to be as it would be after an apply.
func (p *pass[T]) same(known written, ok bool, m, live *unstructured.Unstructured) bool {
	digest := m.GetAnnotations()[p.names.digest()]
	opaque := m.GetKind() == "Secret" && m.GetAPIVersion() == "v1" // the cache may have nothing but its metadata
	switch {
	case ok && known.digest == digest && known.version == live.GetResourceVersion():
		return true
	case opaque, ok && known.digest != digest:
		return false
	case ok:
		return known.values == fingerprint.OfManifest(live.Object, m.Object)
	case live.GetAnnotations()[p.names.digest()] != digest:
		return false
	}
	if paths, _ := fingerprint.Diff(m.Object, live.Object, 1); len(paths) > 0 {
		return false
	}
	p.memory.found(refOf(m), written{
		uid: live.GetUID(), version: live.GetResourceVersion(), digest: digest, at: time.Now(),
		values: fingerprint.OfManifest(live.Object, m.Object),
	})
	return true
}

// write sends a write to a child and notes the answer. live is the object as it was known, nil if there was none.
func (p *pass[T]) write(r ref, live, m *unstructured.Unstructured, repair bool, send func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	begun := p.memory.begin(r, p.owner.uid)
	answer, err := send()
	if err != nil {
		if p.memory.end(r, begun, nil, "") {
			p.waker.Objects(p.owner.NamespacedName)
		}
		return nil, err
	}
	answer.SetManagedFields(nil) // the cache may not have them, and what is compared must be alike
	w := &written{
		uid: answer.GetUID(), version: answer.GetResourceVersion(), digest: m.GetAnnotations()[p.names.digest()],
		values: fingerprint.OfManifest(answer.Object, m.Object), at: time.Now(), answer: answer,
	}
	verb := "create"
	if live != nil {
		verb, w.before = "apply", live.GetResourceVersion()
	}
	if repair {
		w.repairs = []time.Time{time.Now()}
	}
	if p.memory.end(r, begun, w, "") {
		p.waker.Objects(p.owner.NamespacedName)
	}
	p.run.Log().V(1).Info("applied a child", "verb", verb, "child", r.String(), "version", w.version)
	return answer, nil
}

// lacking notes what a child lacks to be ready.
func (p *pass[T]) lacking(r ref, live *unstructured.Unstructured) {
	if live.GetDeletionTimestamp() != nil {
		p.wait(r, fmt.Sprintf("was deleted, which waits for the end of its owner, because it cannot be created again without loss: "+
			"delete the owner, or remove finalizer %s from it to lose it", p.names.finalizer()))
		return
	}
	lacks := health.Lacking(live, r.GroupVersionKind)
	if lacks == "" {
		return
	}
	if result := health.Of(live, health.Hints{}, nil); result.Status != health.Current && result.Why != "" {
		lacks = result.Why
	}
	p.wait(r, lacks)
}

// seize takes an object from its controller.
func (p *pass[T]) seize(ctx context.Context, r ref, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	rest := []metav1.OwnerReference{}
	for _, owner := range live.GetOwnerReferences() {
		if owner.Controller == nil || !*owner.Controller {
			rest = append(rest, owner)
		}
	}
	return p.client.Patch(ctx, r, map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "ownerReferences": rest,
	}})
}

// holds reports whether an object has a finalizer.
func holds(obj client.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}
