package engine

import (
	"context"
	"reflect"
	"strings"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// reflect shows in status what was observed: of a thing that is there and ours what it is, of any
// other nothing. What was shown before, or what somebody else wrote there, is not about the present.
func (p *pass) reflect(ctx context.Context) {
	if p.seen.Phase == decide.PhaseMissing || !p.facts.Seen.Ours() {
		p.showNothing()
		return
	}
	p.obj.TrimtabExternal().External = observed(p.id, plain.Text(p.seen.External), p.record.Incarnation)
	if p.e.driver.Reflect == nil || !p.seen.compared() {
		return
	}
	shown, _ := p.obj.DeepCopyObject().(Object)
	reflects, have := p.e.driver.Reflect, p.seen.Have
	_, err := pure(ctx, &p.e.left, subjectOf(p.obj), "Reflect", func() (struct{}, error) {
		reflects(shown, have)
		return struct{}{}, nil
	})
	if err != nil {
		p.loop.Log.Error(err, "Reflect did not come to its end; status is not complete")
		p.unreflected, p.hangs = err, p.e.left.stuck(p.uid())
		return
	}
	p.obj, p.loop.Object = shown, shown
}

// showNothing empties the status of all but what every kind has.
func (p *pass) showNothing() {
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
