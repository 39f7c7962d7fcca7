package engine

import (
	"reflect"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// reflect shows in status what was observed: the resource, if it exists and is ours, or else
// nothing. What an earlier pass or somebody else wrote there does not describe the present.
func (p *resource) reflect() {
	if p.seen.Phase == decide.PhaseMissing || !p.facts.Seen.Ours() {
		p.showNothing()
		return
	}
	p.showObserved()
	if p.e.driver.Reflect == nil || !p.seen.compared() && !p.seen.shows() {
		return
	}
	before, shown := p.lend(), p.obj // the first time, the lent copy serves as the earlier state
	if p.shown {
		before, shown = p.obj, copyOf(p.obj)
	}
	reflects, have := p.e.driver.Reflect, p.seen.Have
	_, err := pure(&p.e.abandoned, subjectOf(p.obj), "Reflect", func() (struct{}, error) {
		reflects(shown, have)
		return struct{}{}, nil
	})
	if err != nil {
		p.run.Log().Error(err, "Reflect did not come to its end; status is not complete")
		p.unreflected, p.hangs = err, p.e.abandoned.stuck(p.uid())
		if !p.shown { // what Reflect wrote is incomplete, or is still changing
			p.use(copyOf(before))
			p.showObserved()
		}
		return
	}
	p.use(shown)
	p.shown = true
}

// showObserved shows what every kind shows of a resource. The copy of the object is the pass's own, so what it has is reused.
func (p *resource) showObserved() {
	status := p.obj.TrimtabExternal()
	if status.External == nil {
		status.External = &api.ExternalObservation{}
	}
	*status.External = api.ExternalObservation{
		ID: p.id, Status: plain.Text(p.seen.External), Incarnation: max(1, p.record.Incarnation), LastApplied: p.appliedVersion(),
	}
}

// showNothing empties the status except for the fields that every kind has.
func (p *resource) showNothing() {
	p.shown = true
	common := *p.obj.TrimtabExternal()
	common.External = nil
	if fields := statusField(reflect.ValueOf(p.obj)); fields.IsValid() {
		fields.SetZero()
	}
	*p.obj.TrimtabExternal() = common
}

// statusField returns the status struct of an object; it is not valid if there is none.
func statusField(obj reflect.Value) reflect.Value {
	if obj.Kind() != reflect.Pointer || obj.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for field, value := range obj.Elem().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "status" && value.Kind() == reflect.Struct && value.CanSet() {
			return value
		}
	}
	return reflect.Value{}
}
