package fault

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// raceSteps are what users may do besides the scenario's steps.
func (s *Scenario) raceSteps() []Step {
	if s.Races != nil {
		return s.Races
	}
	var races []Step
	for _, step := range s.Steps {
		if step.object != nil {
			races = append(races, Delete(step.object), recreate(step))
		}
	}
	for _, step := range s.Steps {
		if step.early {
			races = append(races, step)
		}
	}
	return races
}

// Recreate deletes an object and creates it again as soon as it is gone: for Scenario.Races.
func Recreate(obj client.Object) Step { return recreate(Create(obj)) }

// recreate deletes what a step created and creates it again as soon as it is gone.
func recreate(created Step) Step {
	s := Delete(created.object)
	s.Name = "re-create " + created.object.GetName()
	s.again = &created
	return s
}

// unfinished is a re-creation that waits for the object to be gone.
type unfinished struct {
	step Step
}

// race lets a user act, now.
func (p *play) race(step Step) error {
	rev, views := p.db.Revision(), len(p.run.External)
	err := p.do(userName, step.Do)
	p.raced = p.db.Revision() > rev || len(p.run.External) > views
	if apierrors.IsNotFound(err) {
		p.void = true // the user came too early or too late
		return nil
	}
	if err == nil && step.again != nil {
		p.races = append(p.races, &unfinished{*step.again})
	}
	return err
}

// finishRaces creates again what was to be re-created and is gone.
func (p *play) finishRaces() error {
	for _, u := range slices.Clone(p.races) {
		_, err := read(context.Background(), p.world(), u.step.object)
		if err == nil {
			continue
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		p.races = slices.DeleteFunc(p.races, func(o *unfinished) bool { return o == u })
		if err := p.do(userName, u.step.Do); err != nil {
			return fmt.Errorf("create %s again: %w", u.step.object.GetName(), err)
		}
		p.raced = true
	}
	return nil
}

// actBefore does what a schedule has others do just before a call.
func (p *play) actBefore(c *history.Call) {
	if d, ok := p.schedule.find(c.Index, conflict); ok {
		p.noteFault(d, c.Index, c.What)
		p.touch(c)
	}
	p.deleteBefore(c)
	p.forge(c)
	d, ok := p.schedule.find(c.Index, race)
	if !ok {
		return
	}
	for i, step := range p.scenario.raceSteps() {
		if fmt.Sprint(i) == d.arg {
			p.noteFault(d, c.Index, step.Name)
			if err := p.race(step); err != nil {
				p.broken = fmt.Errorf("race %q: %w", step.Name, err)
			}
		}
	}
}

// objectOf names the object that a call is about.
func (p *play) objectOf(c *history.Call) (*unstructured.Unstructured, error) {
	gvk, err := p.rest.KindFor(resourceOf(c))
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(c.Namespace)
	u.SetName(c.Name)
	return u, nil
}

func resourceOf(c *history.Call) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.Group, Resource: c.Resource}
}

// touchedAnnotation is what another writer puts on an object; comparisons skip it.
const touchedAnnotation = "fault.kubesim/touched"

// touch changes the object that a call is about, as another writer may at any moment.
func (p *play) touch(c *history.Call) {
	u, err := p.objectOf(c)
	if err != nil {
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, touchedAnnotation, c.Index)
	_ = p.do(foreignName, func(ctx context.Context, w *World) error { // an object that is gone cannot be touched
		return w.Client.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody-else"))
	})
}
