package corpus

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Applier is a correct operator in the style of server-side apply: for each Item it applies
// a ConfigMap and a Deployment that mounts it, and writes nothing else.
type Applier struct{ client.Client }

// SetupApplier sets up an Applier.
func SetupApplier(mgr ctrl.Manager, _ *fault.Env) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Item{}).
		Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(&Applier{mgr.GetClient()})
}

// Reconcile implements reconcile.Reconciler.
func (r *Applier) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil || !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := applymeta.OwnerReference().WithAPIVersion(groupVersion().String()).WithKind("Item").
		WithName(item.Name).WithUID(item.UID).WithController(true).WithBlockOwnerDeletion(true)
	if err := r.applyConfig(ctx, item, owner); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.applyDeployment(ctx, item, owner)
}

func (r *Applier) applyConfig(ctx context.Context, item *Item, owner *applymeta.OwnerReferenceApplyConfiguration) error {
	seen := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(item), seen); client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := ours(seen, item); err != nil {
		return err
	}
	if seen.Data["text"] == item.Spec.Text && seen.UID != "" {
		return nil
	}
	return r.Apply(ctx, applycore.ConfigMap(item.Name, item.Namespace).WithOwnerReferences(owner).
		WithData(map[string]string{"text": item.Spec.Text}), client.FieldOwner("applier"), client.ForceOwnership)
}

// ours fails if there is an object that is not the item's.
func ours(obj, item client.Object) error {
	if obj.GetUID() != "" && !metav1.IsControlledBy(obj, item) {
		return fmt.Errorf("%s is not of this %s", obj.GetName(), item.GetName())
	}
	return nil
}

func (r *Applier) applyDeployment(ctx context.Context, item *Item, owner *applymeta.OwnerReferenceApplyConfiguration) error {
	seen := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(item), seen); client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := ours(seen, item); err != nil {
		return err
	}
	if seen.Spec.Replicas != nil && int64(*seen.Spec.Replicas) == item.Spec.Size {
		return nil
	}
	labels := map[string]string{"item": item.Name}
	return r.Apply(ctx, applyapps.Deployment(item.Name, item.Namespace).WithOwnerReferences(owner).
		WithSpec(applyapps.DeploymentSpec().WithReplicas(int32(item.Spec.Size)).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(applycore.PodTemplateSpec().WithLabels(labels).
				WithSpec(applycore.PodSpec().WithContainers(applycore.Container().WithName("main").WithImage("example.com/main:1"))))),
		client.FieldOwner("applier"), client.ForceOwnership)
}

// Classes is a correct cluster-scoped operator: for each Site it keeps a PriorityClass, which
// cannot be changed, so that a new value means a new object.
type Classes struct{ client.Client }

// SetupClasses sets up a Classes.
func SetupClasses(mgr ctrl.Manager, _ *fault.Env) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Site{}).
		Owns(&schedulingv1.PriorityClass{}).Complete(&Classes{mgr.GetClient()})
}

// Reconcile implements reconcile.Reconciler.
func (r *Classes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil || !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	class := &schedulingv1.PriorityClass{}
	err := r.Get(ctx, client.ObjectKeyFromObject(site), class)
	switch {
	case apierrors.IsNotFound(err):
		class.Name, class.Value = site.Name, int32(site.Spec.Size)
		if err := controllerutil.SetControllerReference(site, class, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, class); err != nil {
			return ctrl.Result{}, err
		}
	case err != nil:
		return ctrl.Result{}, err
	case ours(class, site) != nil:
		return ctrl.Result{}, ours(class, site)
	case int64(class.Value) != site.Spec.Size: // the event of its end brings us back
		return ctrl.Result{}, r.Delete(ctx, class, client.Preconditions{UID: &class.UID})
	}
	before := site.Status.deepCopy()
	site.Status.ObservedGeneration = site.Generation
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Written", ObservedGeneration: site.Generation,
	})
	if equality.Semantic.DeepEqual(before, site.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, site)
}

// Announcer is a correct operator with leader election and events: it writes each Item's text
// into a Part and says so in an event.
type Announcer struct {
	client.Client

	recorder events.EventRecorder
}

// SetupAnnouncer sets up an Announcer.
func SetupAnnouncer(mgr ctrl.Manager, _ *fault.Env) error {
	return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&Part{}).
		Complete(&Announcer{mgr.GetClient(), mgr.GetEventRecorder("announcer")})
}

// Reconcile implements reconcile.Reconciler.
func (r *Announcer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item := &Item{}
	if err := r.Get(ctx, req.NamespacedName, item); err != nil || !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	part := &Part{ObjectMeta: metav1.ObjectMeta{Name: item.Name, Namespace: item.Namespace}}
	did, err := controllerutil.CreateOrUpdate(ctx, r.Client, part, func() error {
		if err := ours(part, item); err != nil {
			return err
		}
		part.Spec.Text = item.Spec.Text
		return controllerutil.SetControllerReference(item, part, r.Scheme())
	})
	if err == nil && did != controllerutil.OperationResultNone {
		r.recorder.Eventf(item, part, corev1.EventTypeNormal, "Announced", "Reconcile", "%s %s", part.Name, did)
	}
	return ctrl.Result{}, err
}

// Poller is a correct operator for an external API whose machines take a while to work: it looks
// every 5 s until one does, and every 10 minutes from then on.
type Poller struct{ renting }

// SetupPoller sets up a Poller.
func SetupPoller(mgr ctrl.Manager, env *fault.Env) error {
	return ofMachines(func(r renting) reconcile.Reconciler { return &Poller{r} })(mgr, env)
}

// Reconcile implements reconcile.Reconciler.
func (r *Poller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, item)
	}
	if err := r.hold(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	if err == nil && len(all) == 0 {
		all = make([]Machine, 1)
		all[0], err = r.Cloud.Create(ctx, string(item.UID), item.Spec.Size)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	after, is, reason := soon, metav1.ConditionFalse, "Booting"
	if all[0].ready() {
		after, is, reason = poll, metav1.ConditionTrue, "Running"
	}
	return ctrl.Result{RequeueAfter: after}, r.reportAs(ctx, item, all[0].ID, is, reason)
}
