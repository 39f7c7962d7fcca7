package actor

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The finalizers that admission gives to volumes and claims.
const (
	claimFinalizer  = "kubernetes.io/pvc-protection"
	volumeFinalizer = "kubernetes.io/pv-protection"
)

// protection lets volumes and claims go that nobody uses.
type protection struct {
	*graph
	caller
}

// wants returns what is to be done about one object.
func (c protection) wants(n *node) []write {
	switch {
	case !n.deleting():
	case n.kind.Prefix == "/persistentvolumeclaims" && n.has(claimFinalizer) && !c.used(n):
		return []write{c.release(n, claimFinalizer)}
	case n.kind.Prefix == "/persistentvolumes" && n.has(volumeFinalizer) && !bound(n):
		return []write{c.release(n, volumeFinalizer)}
	}
	return nil
}

func (c protection) release(n *node, finalizer string) write {
	return write{
		what: "let go of " + n.String() + ", which nobody uses",
		do:   func(ctx context.Context) error { return c.removeFinalizer(ctx, n, finalizer) },
	}
}

// used tells whether a pod that runs somewhere has a claim mounted.
func (c protection) used(claim *node) bool {
	for o := range c.sorted() {
		if o.kind.Prefix != "/pods" || o.Namespace != claim.Namespace {
			continue
		}
		pod, ok := decode(o).(*corev1.Pod)
		if ok && pod.Spec.NodeName != "" && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			return true
		}
	}
	return false
}

func bound(volume *node) bool {
	v, ok := decode(volume).(*corev1.PersistentVolume)
	return ok && v.Status.Phase == corev1.VolumeBound
}
