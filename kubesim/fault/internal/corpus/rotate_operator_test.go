package corpus

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Rotate re-creates strimzi/strimzi-kafka-operator#8401. When the key of the authority is replaced, it first makes the
// pod trust the new key besides the old one, then issues a server certificate that is signed by the new
// one, and then makes the pod trust only the new one. That the key was replaced it knows by having replaced it. Killed
// after the first step, it finds the key in place, keeps the certificate and only records the generation of the
// new key with it. In the end, the pod trusts only the new key, and serves a certificate signed by the old one.
//
// Fixed, it issues a certificate if the generation recorded with the certificate is not that of the key.
type Rotate struct {
	kit

	Fixed bool
}

// keyGeneration is the annotation of a certificate that says of which generation the authority's key was.
const keyGeneration = "corpus.example.com/key-generation"

// SetupRotate sets up a Rotate: Items are clusters whose Size is the wanted generation of the authority's key, and of each there
// are three Parts: NAME-authority, whose Size is the generation of its key, NAME-certificate, whose Size is that
// of the key that signed it, and NAME-pod, whose Text says which keys it trusts.
func SetupRotate(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Rotate{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Rotate) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	authority, replaced, err := r.authority(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	key := authority.Spec.Size
	pod, err := r.part(ctx, item, "-pod")
	if err != nil {
		return ctrl.Result{}, err
	}
	only := fmt.Sprintf("trusts %d", key)
	if pod == nil {
		pod, err = r.create(ctx, item, "-pod", Spec{Text: only})
	} else if pod.Spec.Text != only {
		err = r.roll(ctx, pod, fmt.Sprintf("trusts %d %d", key-1, key))
	}
	if err == nil {
		err = r.certify(ctx, item, key, replaced)
	}
	if err == nil {
		err = r.roll(ctx, pod, only)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// authority returns the authority, and whether its key was replaced now.
func (r *Rotate) authority(ctx context.Context, item *Item) (*Part, bool, error) {
	a, err := r.part(ctx, item, "-authority")
	if err != nil {
		return nil, false, err
	}
	if a == nil {
		a, err = r.create(ctx, item, "-authority", Spec{Size: item.Spec.Size})
		return a, false, err
	}
	if a.Spec.Size >= item.Spec.Size {
		return a, false, nil
	}
	a.Spec.Size = item.Spec.Size
	return a, true, r.Update(ctx, a)
}

// certify issues the certificate, if there is none or the authority's key was replaced.
func (r *Rotate) certify(ctx context.Context, item *Item, key int64, replaced bool) error {
	c, err := r.part(ctx, item, "-certificate")
	if err != nil {
		return err
	}
	if c == nil {
		_, err := r.create(ctx, item, "-certificate", Spec{Size: key})
		return err
	}
	recorded := fmt.Sprint(key)
	if r.Fixed {
		replaced = c.Spec.Size != key
	}
	if !replaced && c.Annotations[keyGeneration] == recorded {
		return nil
	}
	if replaced {
		c.Spec.Size = key
	}
	annotate(c, keyGeneration, recorded)
	return r.Update(ctx, c)
}

// roll starts a pod again if it does not trust what it has to.
func (r *Rotate) roll(ctx context.Context, pod *Part, trusts string) error {
	if pod.Spec.Text == trusts {
		return nil
	}
	pod.Spec.Text = trusts
	return r.Update(ctx, pod)
}
