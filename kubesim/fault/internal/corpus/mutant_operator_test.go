package corpus

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

const (
	finalizer = "corpus.example.com/machine"
	ready     = "Ready"
	poll      = 10 * time.Minute
)

// Bug is what is wrong with a Renter.
type Bug string

// The bugs, each named by what it does, beside the invariant that it breaks.
const (
	NoBug          Bug = ""
	OnceOnly       Bug = "settings follow the machine only in the pass that resizes it" // I1
	ForgetsSpare   Bug = "the spare machine is forgotten at deletion"                   // I2
	CreatesBlindly Bug = "creates by its own record and drops the surplus later"        // I3
	LateFinalizer  Bug = "the finalizer follows the machine"                            // I4
	Heartbeat      Bug = "writes the time of each look into its status"                 // I5
	KeepsFinalizer Bug = "the finalizer stays"                                          // I6
	TakesItBack    Bug = "an error takes back the generation that was observed"         // I7
	ReadyTooEarly  Bug = "says ready before the machine was started"                    // I8
	NewTransition  Bug = "a new transition time at each write"                          // I9
	TakesOver      Bug = "overwrites settings, whoever made them"                       // I10
	HidesReady     Bug = "takes Ready back once the machine was resized"                // I8
	PraisesFailure Bug = "tells a failure in the words of Ready"                        // I19
	QuotesErrors   Bug = "puts an error into its status as it comes"                    // I14
	BelievesReady  Bug = "does nothing for an Item that says it is ready"               // I1
	HotLoop        Bug = "after an error it looks again at once, for ever"              // I13
	PeeksUnallowed Bug = "reads what its role does not allow, and goes on"              // I15
	ForgetsTaken   Bug = "what a delete took with its finalizer is forgotten"           // I2
	TellsFailure   Bug = "tells a failure beside Ready"                                 // none: that is right
	LeaksGoroutine Bug = "a goroutine of a failed pass outlives the process"            // I17
)

// Renter rents one machine for each Item and writes a ConfigMap with its ID. Without a bug
// it is correct.
type Renter struct {
	renting

	// Live reads without a cache.
	Live client.Reader
	Bug  Bug

	upset bool // only with HotLoop
}

// SetupRenter sets up a Renter with a bug.
func SetupRenter(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		r := &Renter{renting: newRenting(mgr, env), Live: mgr.GetAPIReader(), Bug: bug}
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}).Owns(&corev1.ConfigMap{}).Complete(r)
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Renter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, item)
	}
	if r.Bug != LateFinalizer {
		if err := r.hold(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
	}
	if c := meta.FindStatusCondition(item.Status.Conditions, ready); r.Bug == BelievesReady && c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == item.Generation {
		return ctrl.Result{RequeueAfter: poll}, nil
	}
	before := item.Status.deepCopy()
	m, err := r.machine(ctx, item)
	if err != nil {
		return ctrl.Result{}, r.fail(ctx, item, err)
	}
	if r.Bug == LateFinalizer {
		status := item.Status
		if err := r.hold(ctx, item); err != nil {
			return ctrl.Result{}, err
		}
		item.Status = status
	}
	if err := r.start(ctx, item, m, &before); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.finish(ctx, item, before, m); err != nil {
		return ctrl.Result{}, err
	}
	if r.upset {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{RequeueAfter: poll}, nil
}

// hold puts the finalizer on.
func (r *Renter) hold(ctx context.Context, item *Item) error {
	if r.Bug == ForgetsTaken {
		return r.kit.hold(ctx, item)
	}
	return r.renting.hold(ctx, item)
}

// machine makes the machine, or makes it as it should be.
func (r *Renter) machine(ctx context.Context, item *Item) (*Machine, error) {
	owner := string(item.UID)
	all, err := r.Cloud.List(ctx, owner)
	if err != nil {
		return nil, err
	}
	if r.Bug == CreatesBlindly {
		if all, err = r.surplus(ctx, item, all); err != nil {
			return nil, err
		}
	}
	if len(all) == 0 {
		m, err := r.Cloud.Prepare(ctx, owner, item.Spec.Size)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	m := &all[0]
	if r.Bug == ForgetsSpare && len(all) == 1 {
		if _, err := r.Cloud.Create(ctx, owner, 1); err != nil {
			return nil, err
		}
	}
	if m.Size == item.Spec.Size {
		return m, nil
	}
	if err := r.Cloud.Resize(ctx, m.ID, item.Spec.Size); err != nil {
		return nil, err
	}
	m.Size = item.Spec.Size
	if r.Bug == OnceOnly {
		return m, r.settings(ctx, item, m)
	}
	return m, nil
}

// fail is what some do when the cloud does not answer.
func (r *Renter) fail(ctx context.Context, item *Item, err error) error {
	switch r.Bug {
	case TakesItBack:
		item.Status.ObservedGeneration = item.Generation - 1
		return errors.Join(err, r.Status().Update(ctx, item))
	case LeaksGoroutine:
		go func() { select {} }()
	case HotLoop:
		r.upset = true
	case TellsFailure, PraisesFailure, QuotesErrors:
		return errors.Join(err, r.tell(ctx, item, err))
	default:
	}
	return err
}

// tell says beside Ready that the cloud does not answer, as kstatus has it.
func (r *Renter) tell(ctx context.Context, item *Item, err error) error {
	c := metav1.Condition{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "CloudFailed", Message: "the cloud does not answer; it is tried again", ObservedGeneration: item.Generation}
	switch r.Bug {
	case PraisesFailure:
		c.Reason, c.Message = "Running", works
	case QuotesErrors:
		c.Message = err.Error()
	default:
	}
	if !meta.SetStatusCondition(&item.Status.Conditions, c) {
		return nil
	}
	return r.Status().Update(ctx, item)
}

// works is what Ready says.
const works = "the machine works"

// surplus is for CreatesBlindly: without a record it takes the cloud for empty, and with one
// it drops what is too much.
func (r *Renter) surplus(ctx context.Context, item *Item, all []Machine) ([]Machine, error) {
	if item.Status.ExternalID == "" {
		m, err := r.Cloud.Prepare(ctx, string(item.UID), item.Spec.Size)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for len(all) > 1 {
		if err := r.Cloud.Delete(ctx, all[0].ID); err != nil {
			return nil, err
		}
		all = all[1:]
	}
	return all, nil
}

// start starts the machine, and with ReadyTooEarly says before that it works.
func (r *Renter) start(ctx context.Context, item *Item, m *Machine, before *Status) error {
	if m.Started {
		return nil
	}
	if r.Bug == ReadyTooEarly {
		if err := r.status(ctx, item, *before, m); err != nil {
			return err
		}
		*before = item.Status.deepCopy()
	}
	return r.Cloud.Start(ctx, m.ID)
}

func (r *Renter) finish(ctx context.Context, item *Item, before Status, m *Machine) error {
	if r.Bug != OnceOnly || before.ExternalID == "" {
		if err := r.settings(ctx, item, m); err != nil {
			return err
		}
	}
	return r.status(ctx, item, before, m)
}

// settings writes the ConfigMap.
func (r *Renter) settings(ctx context.Context, item *Item, m *Machine) error {
	c := settingsOf(item)
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, c, func() error {
		if r.Bug != TakesOver && c.ResourceVersion != "" && !metav1.IsControlledBy(c, item) {
			return fmt.Errorf("config map %s is somebody else's", c.Name)
		}
		c.Data = map[string]string{"machine": m.ID, "size": fmt.Sprint(m.Size)}
		return controllerutil.SetControllerReference(item, c, r.Scheme())
	})
	return err
}

func settingsOf(item *Item) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: item.Name + "-settings", Namespace: item.Namespace}}
}

// status writes the status if it is not what it was.
func (r *Renter) status(ctx context.Context, item *Item, before Status, m *Machine) error {
	item.Status.ExternalID = m.ID
	item.Status.ObservedGeneration = item.Generation
	c := metav1.Condition{Type: ready, Status: metav1.ConditionTrue, Reason: "Running", Message: works, ObservedGeneration: item.Generation}
	meta.RemoveStatusCondition(&item.Status.Conditions, "Reconciling")
	switch r.Bug {
	case HidesReady:
		if item.Generation > 1 {
			c.Status = metav1.ConditionFalse
		}
	case NewTransition:
		if equality.Semantic.DeepEqual(before.ObservedGeneration, item.Generation) {
			return nil
		}
		item.Status.Conditions = nil
	case Heartbeat:
		item.Status.LastObservedAt = new(metav1.Now())
	default:
	}
	meta.SetStatusCondition(&item.Status.Conditions, c)
	if equality.Semantic.DeepEqual(before, item.Status) {
		return nil
	}
	return r.Status().Update(ctx, item)
}

// remove deletes the machine and lets the Item go.
func (r *Renter) remove(ctx context.Context, item *Item) error {
	if !controllerutil.ContainsFinalizer(item, finalizer) {
		return nil
	}
	all, err := r.Cloud.List(ctx, string(item.UID))
	if err != nil {
		return err
	}
	for _, m := range all {
		if r.Bug == ForgetsSpare && m.ID != item.Status.ExternalID {
			continue
		}
		if err := r.Cloud.Delete(ctx, m.ID); err != nil {
			return err
		}
	}
	switch r.Bug {
	case KeepsFinalizer:
		return nil
	case PeeksUnallowed:
		_ = r.Live.Get(ctx, client.ObjectKeyFromObject(item), &Part{})
	default:
	}
	return r.letGo(ctx, item)
}
