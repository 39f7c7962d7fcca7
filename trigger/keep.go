package trigger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// FinalizerOf returns the finalizer with which [Reference.Keep] has the objects stay to which objects of a kind refer.
func FinalizerOf(kind schema.GroupVersionKind) string {
	return strings.ToLower(kind.Kind) + "." + kind.Group + "/in-use"
}

// keeper puts the finalizer on the objects that are referred to, and removes it from those that are being deleted and
// that nothing refers to any more.
type keeper[T client.Object] struct {
	*attachedReference[T]

	kind, finalizer string
	client          client.Client
	events          events.EventRecorder
}

// keep starts the keeper of a reference.
func (r *attachedReference[T]) keep() error {
	mgr := r.target.Manager
	gvk, err := apiutil.GVKForObject(cached.New[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	name := r.target.Name + "-keeper"
	k := &keeper[T]{r, gvk.Kind, FinalizerOf(gvk), mgr.GetClient(), mgr.GetEventRecorder(name)}
	c, err := controller.New(name, mgr, controller.Options{Reconciler: k})
	if err != nil {
		return fmt.Errorf("keep what a %s refers to: %w", k.kind, err)
	}
	if err := c.Watch(source.Kind(mgr.GetCache(), r.To, &handler.EnqueueRequestForObject{})); err != nil {
		return err
	}
	return c.Watch(source.Kind(mgr.GetCache(), client.Object(cached.New[T]()), handler.EnqueueRequestsFromMapFunc(k.named),
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(k.named(context.Background(), e.ObjectOld), k.named(context.Background(), e.ObjectNew)) //nolint:forbidigo // it calls nobody
		}}))
}

// named returns the objects to which obj refers.
func (k *keeper[T]) named(_ context.Context, obj client.Object) []reconcile.Request {
	o, ok := obj.(T)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range k.names(o) {
		namespace, name, _ := strings.Cut(name, string(types.Separator))
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return requests
}

// Reconcile implements [reconcile.Reconciler], for an object that may be referred to.
func (k *keeper[T]) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	to, ok := k.To.DeepCopyObject().(client.Object)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("%T is no object", k.To)
	}
	if err := k.client.Get(ctx, r.NamespacedName, to); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	users, err := k.users(ctx, r.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	before, _ := to.DeepCopyObject().(client.Object)
	switch deleting := !to.GetDeletionTimestamp().IsZero(); {
	case deleting && len(users) > 0:
		k.events.Eventf(to, nil, "Normal", "InUse", "Delete", "%s", k.waits(users))
		return reconcile.Result{}, nil
	case deleting && controllerutil.RemoveFinalizer(to, k.finalizer):
	case !deleting && len(users) > 0 && controllerutil.AddFinalizer(to, k.finalizer):
	default:
		return reconcile.Result{}, nil
	}
	err = k.client.Patch(ctx, to, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) { // the copy is old
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// users are the objects that refer to the one of that name.
func (k *keeper[T]) users(ctx context.Context, to types.NamespacedName) ([]T, error) {
	users, err := k.objects.Under(ctx, k.index, to.String())
	if err != nil || !k.someUnknown.Load() {
		return users, err
	}
	unknown, err := k.objects.Under(ctx, k.index, unknown)
	return append(users, unknown...), err
}

// mostNamed is how many objects an event names.
const mostNamed = 3

// waits says for which objects a deletion waits.
func (k *keeper[T]) waits(users []T) string {
	var names []string
	for _, u := range users {
		names = append(names, strings.TrimPrefix(client.ObjectKeyFromObject(u).String(), "/"))
	}
	slices.Sort(names)
	more := ""
	if len(names) > mostNamed {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return fmt.Sprintf("stays until nothing refers to it; %s %s%s: delete them, or have them refer to something else", k.kind, strings.Join(names, ", "), more)
}
