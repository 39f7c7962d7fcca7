package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// fitAssigned returns what is wrong with the identity in the answer to a create; nil if it is valid. If it is missing, only
// a search can find the resource.
func (e *Engine) fitAssigned(id string) error {
	if e.options.AssignedIDs && id == "" {
		return fmt.Errorf("the driver's Create returned no ID, which it must with Options.AssignedIDs; this is a bug in %s", e.driver.Type)
	}
	return nil
}

// find searches for the resource by its mark.
func (p *caller) find(ctx context.Context) {
	driver, r := &p.e.driver, p.request()
	r.Mark = p.mark().Labels()
	var all []Found
	p.ask(ctx, decide.ActionFindOwned, func(ctx context.Context, obj Object) (string, error) {
		r.Object = obj
		found, err := driver.Find(ctx, r)
		all = found
		return fmt.Sprintf("%d found", len(found)), err
	})
	if p.facts.Last.Failed { // an abandoned call may still write to all
		return
	}
	p.found = p.ours(all)
	switch len(p.found) {
	case 0:
		p.facts.Found = decide.FoundNothing
	case 1:
		p.facts.Found = decide.FoundOne
	default:
		p.facts.Found = decide.FoundMany
	}
}

// ours are those of the resources that were found that may be the object's present one. If an earlier record may be lost, it
// may be that of any incarnation.
func (p *caller) ours(all []Found) []Found {
	mine := func(f Found) bool { return f.ID != "" && f.Mark[record.MarkUID] == string(p.obj.GetUID()) }
	all = slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !mine(f) })
	exact := slices.DeleteFunc(slices.Clone(all), func(f Found) bool { return !p.mark().Bears(f.Mark) })
	if len(exact) > 0 || p.track.creation != decide.CreationUnrecorded {
		return exact
	}
	return all
}
