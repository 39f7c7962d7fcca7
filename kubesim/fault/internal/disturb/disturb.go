// Package disturb does what a schedule lets others do to an operator: users and other writers who act
// at a bad moment, and calls that are answered in a bad way.
package disturb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// Step is something that somebody besides the operator does.
type Step struct {
	Name string
	Do   func(ctx context.Context, w *sandbox.World) error
	// Again follows once Object is gone; nil means that nothing does.
	Again  *Step
	Object client.Object
}

// Others are those who act in one run besides the operator and the users of the scenario's steps.
type Others struct {
	// Schedule says what they do and when.
	Schedule schedule.Schedule
	// Races are what users may do, by the numbers that schedules have for them.
	Races []Step
	// Like is the undisturbed run, by which statuses are forged, and which says what the operator made.
	Like *history.Run

	// Void is set when somebody found nothing to act on: the run says nothing.
	Void bool
	// HeldUntil is when another controller removes its finalizer from an object in deletion; zero if there is none.
	HeldUntil time.Time
	// Broken is what makes the rest of the run pointless.
	Broken error

	box      *sandbox.Sandbox
	record   *history.Recorder
	pending  []*Step                    // re-creations that wait for their objects to be gone
	deleting *deletion                  // that has begun and not ended; nil for none
	rival    *rival                     // nil for none
	held     *unstructured.Unstructured // that another controller put its finalizer on; nil for none
	deleted  *unstructured.Unstructured // that the operator made and somebody else deleted; nil for none
}

// Enter lets them act in a sandbox.
func (o *Others) Enter(box *sandbox.Sandbox, record *history.Recorder) { o.box, o.record = box, record }

// Before lets them act just before a call.
func (o *Others) Before(c *history.Call) {
	if d, ok := o.Schedule.Find(c.Index, schedule.Conflict); ok {
		o.record.Disturbed(d.Kind, c.Index, c.What)
		o.touch(c)
	}
	if d, ok := o.Schedule.Find(c.Index, schedule.Replaced); ok {
		o.record.Disturbed(d.Kind, c.Index, c.What)
		o.replace(c)
	}
	o.contend(c)
	o.deleteBefore(c)
	o.forge(c)
	if d, ok := o.Schedule.Find(c.Index, schedule.Drifted); ok {
		o.drift(d, c.Index, o.Like.StepOf(c.Index))
	}
	d, ok := o.Schedule.Find(c.Index, schedule.Race)
	if !ok {
		return
	}
	for i, race := range o.Races {
		if strconv.Itoa(i) == d.Arg {
			o.record.Disturbed(d.Kind, c.Index, race.Name)
			if err := o.Race(race); err != nil {
				o.Broken = fmt.Errorf("race %q: %w", race.Name, err)
			}
		}
	}
}

// Race lets a user act, now.
func (o *Others) Race(race Step) error {
	err := o.box.Do(history.User, race.Do)
	if apierrors.IsNotFound(err) || sandbox.IsRefused(err) {
		o.Void = true // the user came too early or too late
		return nil
	}
	if err == nil && race.Again != nil {
		o.pending = append(o.pending, race.Again)
	}
	return err
}

// Finish creates again what was to be re-created and is gone, and lets go of what another controller holds.
func (o *Others) Finish() error {
	if err := o.release(); err != nil {
		return err
	}
	for _, again := range slices.Clone(o.pending) {
		_, err := o.box.World().Read(context.Background(), again.Object)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		err = o.box.Do(history.User, again.Do)
		if sandbox.IsRefused(err) {
			continue // the user tries again
		}
		o.pending = slices.DeleteFunc(o.pending, func(p *Step) bool { return p == again })
		if err != nil {
			return fmt.Errorf("create %s again: %w", again.Object.GetName(), err)
		}
	}
	return nil
}

// read reads the object that a call is about.
func (o *Others) read(ctx context.Context, w *sandbox.World, c *history.Call) (*unstructured.Unstructured, error) {
	u, err := o.box.ObjectOf(c)
	if err == nil {
		err = w.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
	}
	return u, err
}

// touch changes the object that a call is about, as another writer may at any moment: by an annotation, or by a
// label of a Deployment, whose generation the API server increases with each change of its annotations. That would
// be a difference of which the operator is innocent.
func (o *Others) touch(c *history.Call) {
	u, err := o.box.ObjectOf(c)
	if err != nil {
		return
	}
	field := "annotations"
	if c.Group == "apps" && c.Resource == "deployments" {
		field = "labels"
	}
	patch := fmt.Sprintf(`{"metadata":{%q:{%q:"%d"}}}`, field, state.Touched, c.Index)
	_ = o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) error { // an object that is gone cannot be touched
		return w.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody-else"))
	})
}
