package engine

import (
	"reflect"
	"strings"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// reflect shows in status what was observed: of a thing that is there and ours what it is, of any
// other nothing. What was shown before, or what somebody else wrote there, is not about the present.
func (p *pass) reflect() {
	if p.seen.Phase == decide.PhaseMissing || !p.facts.Seen.Ours() {
		p.showNothing()
		return
	}
	p.obj.TrimtabExternal().External = p.observed()
	if p.e.driver.Reflect == nil || !p.seen.compared() {
		return
	}
	before, shown := p.lend(), p.obj // the first time, the copy that was lent is one of before, too
	if p.shown {
		before, shown = p.obj, copyOf(p.obj)
	}
	reflects, have := p.e.driver.Reflect, p.seen.Have
	_, err := pure(&p.e.left, subjectOf(p.obj), "Reflect", func() (struct{}, error) {
		reflects(shown, have)
		return struct{}{}, nil
	})
	if err != nil {
		p.loop.Log.Error(err, "Reflect did not come to its end; status is not complete")
		p.unreflected, p.hangs = err, p.e.left.stuck(p.uid())
		if !p.shown { // what Reflect left behind is incomplete, or still changes
			p.use(copyOf(before))
			p.obj.TrimtabExternal().External = p.observed()
		}
		return
	}
	p.use(shown)
	p.shown = true
}

func (p *pass) observed() *api.ExternalObservation {
	return observed(p.id, plain.Text(p.seen.External), p.record.Incarnation)
}

// use goes on with another object in place of obj.
func (p *pass) use(obj Object) { p.obj, p.loop.Object = obj, obj }

// showNothing empties the status of all but what every kind has.
func (p *pass) showNothing() {
	p.shown = true
	common := *p.obj.TrimtabExternal()
	common.External = nil
	if fields := statusField(reflect.ValueOf(p.obj)); fields.IsValid() {
		fields.SetZero()
	}
	*p.obj.TrimtabExternal() = common
}

// statusField is the status of an object, as its type has it; not valid if it is no struct.
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
