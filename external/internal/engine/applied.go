package engine

import (
	"context"
	"fmt"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/applied"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

// readApplied makes sure that the object says what its resource was last given. What this process has not written is believed
// only if the status, which a copy, a restore or an older manifest does not bring along, says the same.
func (p *recording) readApplied() {
	written := p.obj.GetAnnotations()[api.AnnotationLastApplied]
	switch shown := p.obj.TrimtabExternal().External; {
	case !p.e.options.LastApplied:
	case p.track.applied != "" && written == p.track.applied, p.track.applied == "" && written == "":
	case p.track.applied != "":
		p.writeDown(p.track.applied)
	case shown == nil || shown.LastApplied != p.appliedVersion():
		p.writeDown("")
	}
}

// appliedVersion stands for what the object says that its resource was last given; empty if that is nothing.
func (p *recording) appliedVersion() string {
	if !p.e.options.LastApplied {
		return ""
	}
	return applied.Version(p.uid(), p.obj.GetAnnotations()[api.AnnotationLastApplied])
}

// forgetApplied notes that it is not known what the resource was given. It becomes durable with the next write of the pass.
func (p *recording) forgetApplied() {
	if p.e.options.LastApplied {
		p.track.applied = ""
		p.writeDown("")
	}
}

// doubtApplied makes durable, before a create or an update, that it will not be known what the resource was given.
func (p *recording) doubtApplied(ctx context.Context, a decide.Action) error {
	if !p.e.options.LastApplied || a != decide.ActionCreate && a != decide.ActionUpdate {
		return nil
	}
	p.track.applied = ""
	if p.obj.GetAnnotations()[api.AnnotationLastApplied] == "" {
		return nil
	}
	p.writeDown("")
	if err := p.run.Persist(ctx); err != nil {
		return fmt.Errorf("write down that the resource is about to be changed: %w", err)
	}
	return nil
}

// toApply is what a create or an update is about to give to the resource; empty if that is not written down.
func (p *recording) toApply() string {
	if !p.e.options.LastApplied {
		return ""
	}
	text, err := applied.Of(p.uid(), applied.SpecOf(p.obj))
	if err != nil {
		p.run.Log().Error(err, "cannot write down what the resource is given")
	}
	return text
}

// wasGiven notes what the resource was given. It becomes durable with the next write of the pass.
func (p *recording) wasGiven(spec string) {
	if spec != "" {
		p.track.applied = spec
		p.writeDown(spec)
	}
}

func (p *recording) writeDown(spec string) {
	annotate(p.obj, api.AnnotationLastApplied, spec)
	p.copy = nil
}

// comparerAfter is [resource.comparer] for what a call returns that gives spec to the resource.
func (p *resource) comparerAfter(spec string) func(obj Object, o Observation) (state, error) {
	compare := p.comparer()
	if spec == "" {
		return compare
	}
	return func(obj Object, o Observation) (state, error) {
		given := copyOf(obj)
		annotate(given, api.AnnotationLastApplied, spec)
		return compare(given, o)
	}
}
