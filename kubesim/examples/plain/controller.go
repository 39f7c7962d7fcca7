package plain

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	finalizer = "plain.example.com/instance"
	ready     = "Ready"
	// drift is how often we look for changes that somebody made at the vendor.
	drift = 10 * time.Minute
)

// Reconciler makes the vendor have what Databases want.
type Reconciler struct {
	client.Client

	// Vendor is where the databases are.
	Vendor Vendor
	// Recorder writes events.
	Recorder events.EventRecorder

	// held are the UIDs of Databases that bear the finalizer.
	held map[types.NamespacedName]types.UID
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&Database{}).
		Owns(&corev1.Secret{}).
		Complete(r)
}

// Reconcile makes one Database true.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	db := &Database{}
	err := r.Get(ctx, req.NamespacedName, db)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if uid, ok := r.held[req.NamespacedName]; ok && uid != db.UID {
		if err := r.bury(ctx, req.NamespacedName, uid); err != nil {
			return ctrl.Result{}, err
		}
	}
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if !db.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, db)
	}
	if controllerutil.AddFinalizer(db, finalizer) {
		if err := r.Update(ctx, db); err != nil {
			return ctrl.Result{}, fmt.Errorf("add finalizer: %w", err)
		}
	}
	if r.held == nil {
		r.held = map[types.NamespacedName]types.UID{}
	}
	r.held[req.NamespacedName] = db.UID
	before := db.Status
	before.Conditions = append([]metav1.Condition(nil), db.Status.Conditions...)
	failed := r.ensure(ctx, db)
	r.judge(db, failed)
	if !equality.Semantic.DeepEqual(before, db.Status) {
		if err := r.Status().Update(ctx, db); err != nil {
			return ctrl.Result{}, fmt.Errorf("update status: %w", err)
		}
		r.tell(db, before)
	}
	return ctrl.Result{RequeueAfter: drift}, failed
}

// remove deletes the instance and then lets the Database go. Its Secret goes by itself.
func (r *Reconciler) remove(ctx context.Context, db *Database) error {
	if !controllerutil.ContainsFinalizer(db, finalizer) {
		return nil
	}
	instance, err := r.Vendor.Find(ctx, string(db.UID))
	if err != nil {
		return fmt.Errorf("find instance: %w", err)
	}
	if instance != nil {
		if err := r.Vendor.Delete(ctx, instance.ID); err != nil {
			return fmt.Errorf("delete instance %s: %w", instance.ID, err)
		}
		r.Recorder.Eventf(db, nil, corev1.EventTypeNormal, "Deleted", "Delete", "deleted instance %s", instance.ID)
	}
	controllerutil.RemoveFinalizer(db, finalizer)
	if err := r.Update(ctx, db); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	delete(r.held, client.ObjectKeyFromObject(db))
	return nil
}

// bury deletes the instance of a Database that went with the finalizer on it, as a DELETE does
// that was under way when the finalizer was written.
func (r *Reconciler) bury(ctx context.Context, key types.NamespacedName, uid types.UID) error {
	instance, err := r.Vendor.Find(ctx, string(uid))
	if err != nil {
		return fmt.Errorf("find instance: %w", err)
	}
	if instance != nil {
		if err := r.Vendor.Delete(ctx, instance.ID); err != nil {
			return fmt.Errorf("delete instance %s: %w", instance.ID, err)
		}
	}
	delete(r.held, key)
	return nil
}

// ensure makes instance and Secret as they should be.
func (r *Reconciler) ensure(ctx context.Context, db *Database) error {
	instance, err := r.Vendor.Find(ctx, string(db.UID))
	if err != nil {
		return fmt.Errorf("find instance: %w", err)
	}
	switch {
	case instance == nil:
		instance, err = r.Vendor.Create(ctx, Instance{
			Owner: string(db.UID), Name: db.Name, Engine: db.Spec.Engine, Size: db.Spec.Size,
		})
		if err != nil {
			return fmt.Errorf("create instance: %w", err)
		}
	case instance.Size != db.Spec.Size:
		if err := r.Vendor.Resize(ctx, instance.ID, db.Spec.Size); err != nil {
			return fmt.Errorf("resize instance %s: %w", instance.ID, err)
		}
	}
	db.Status.ExternalID = instance.ID
	return r.ensureSecret(ctx, db, instance)
}

// ensureSecret makes the Secret with the connection.
func (r *Reconciler) ensureSecret(ctx context.Context, db *Database, instance *Instance) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: db.Name + "-connection", Namespace: db.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		if secret.ResourceVersion != "" && !metav1.IsControlledBy(secret, db) {
			return fmt.Errorf("secret %q belongs to somebody else; rename it or the Database", secret.Name)
		}
		secret.Data = map[string][]byte{"host": []byte(instance.Host), "password": []byte(instance.Password)}
		return controllerutil.SetControllerReference(db, secret, r.Scheme())
	})
	if err != nil {
		return fmt.Errorf("write secret: %w", err)
	}
	return nil
}

// judge sets the status.
func (r *Reconciler) judge(db *Database, failed error) {
	db.Status.ObservedGeneration = db.Generation
	c := metav1.Condition{Type: ready, Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: db.Generation}
	if failed != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Failed", failed.Error()
	}
	meta.SetStatusCondition(&db.Status.Conditions, c)
}

// tell writes an event when Ready has changed.
func (r *Reconciler) tell(db *Database, before DatabaseStatus) {
	was, is := meta.FindStatusCondition(before.Conditions, ready), meta.FindStatusCondition(db.Status.Conditions, ready)
	if was != nil && was.Status == is.Status {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	r.Recorder.Eventf(db, nil, kind, is.Reason, "Reconcile", "Ready is %s %s", is.Status, is.Message)
}
