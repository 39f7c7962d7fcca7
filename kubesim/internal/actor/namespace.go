package actor

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// namespaces empties namespaces that are being deleted and lets them go.
type namespaces struct {
	*graph
	caller
}

// wants returns what is to be done about one object; something only if it is a namespace that
// is being deleted. Pods go first and all else when they are gone.
func (c namespaces) wants(n *node) []write {
	if !n.isNamespace() || !n.deleting() {
		return nil
	}
	ns, ok := decode(n).(*corev1.Namespace)
	if !ok || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil
	}
	var writes []write
	var pods, rest bool
	kinds := map[string]bool{}
	for o := range c.content(n.Name) {
		isPod := o.kind.Prefix == "/pods"
		pods, rest = pods || isPod, true
		if pods && !isPod {
			break
		}
		if !o.deleting() && !kinds[o.kind.Prefix] {
			kinds[o.kind.Prefix] = true
			writes = append(writes, c.empty(o.kind, n.Name))
		}
	}
	if !rest {
		writes = append(writes, write{
			what: "finalize namespace " + n.Name,
			do:   func(ctx context.Context) error { return c.finalize(ctx, n, ns) },
		})
	}
	return writes
}

// content yields what a namespace holds, pods first.
func (c namespaces) content(namespace string) func(func(*node) bool) {
	return func(yield func(*node) bool) {
		for _, pods := range []bool{true, false} {
			for o := range c.sorted() {
				if o.Namespace == namespace && (o.kind.Prefix == "/pods") == pods && !yield(o) {
					return
				}
			}
		}
	}
}

func (c namespaces) empty(k apiserver.Kind, namespace string) write {
	return write{
		what: fmt.Sprintf("delete all %s in namespace %s", k.Resource.GroupResource(), namespace),
		do:   func(ctx context.Context) error { return c.deleteAll(ctx, k, namespace) },
	}
}

// finalize removes the finalizer that stands for a namespace's content.
func (c namespaces) finalize(ctx context.Context, n *node, ns *corev1.Namespace) error {
	ns = ns.DeepCopy()
	ns.APIVersion, ns.Kind, ns.ResourceVersion = "v1", "Namespace", fmt.Sprint(n.rev)
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	return c.send(ctx, http.MethodPut, urlOf(n.kind, "", n.Name, "finalize"), "application/json", ns)
}

func decode(n *node) runtime.Object {
	obj, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(n.data, nil, nil)
	if err != nil {
		panic(fmt.Sprintf("kubesim: %s cannot be read: %v", n.key, err))
	}
	return obj
}
