package corpus

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// TrustsSession is the bug of a Session: it breaks I1.
const TrustsSession Bug = "takes the refusal of an old token for one of the machine"

// Session creates one machine per Item with a token that it has to ask for, which is good for ten minutes. It asks
// before the first call that needs one if its own is about to end, and again if the cloud refuses it all the same.
type Session struct {
	renting

	Bug Bug

	until time.Time // the end of the token
}

// SetupSession sets up a Session with a bug.
func SetupSession(bug Bug) func(ctrl.Manager, *fault.Env) error {
	return func(mgr ctrl.Manager, env *fault.Env) error {
		return ctrl.NewControllerManagedBy(mgr).For(&Item{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Complete(&Session{renting: newRenting(mgr, env), Bug: bug})
	}
}

// What a token is good for.
const (
	tokenLife  = 10 * time.Minute
	tokenSpare = time.Minute
)

var errExpired = errors.New("the token has expired")

// Reconcile implements reconcile.Reconciler.
func (r *Session) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	if !item.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, item)
	}
	if err := r.logIn(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.hold(ctx, item); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.ensure(ctx, item.UID, item.Spec.Size)
}

// ensure creates the machine of an item, unless there is one.
func (r *Session) ensure(ctx context.Context, uid types.UID, size int64) error {
	all, err := r.Cloud.List(ctx, string(uid))
	if err != nil || len(all) > 0 {
		return err
	}
	err = r.create(ctx, string(uid), size)
	if !errors.Is(err, errExpired) {
		return err
	}
	if r.Bug == TrustsSession {
		return nil // there is nothing to be done for this one
	}
	r.until = time.Time{}
	return err
}

// logIn asks for a token, unless there is one for some time to come.
func (r *Session) logIn(ctx context.Context) error {
	if time.Until(r.until) > tokenSpare {
		return nil
	}
	until, err := fault.Read(ctx, r.Cloud.Env, "log in", func(*Cloud) (time.Time, error) { return time.Now().Add(tokenLife), nil })
	if err == nil {
		r.until = until
	}
	return err
}

// create makes a machine with the token.
func (r *Session) create(ctx context.Context, owner string, size int64) error {
	until := r.until
	_, err := fault.Write(ctx, r.Cloud.Env, "create machine", func(c *Cloud) (Machine, error) {
		if time.Now().After(until) {
			return Machine{}, errExpired
		}
		return c.Create(owner, size, true), nil
	})
	return err
}
