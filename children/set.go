package children

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/loop"
)

// Set is the children of the objects of one kind. Make one with [Of] and give it to one controller with [New].
type Set[T client.Object] struct {
	children []Child[T]
	wiring   *wiring[T]
}

// Of returns the set of these children. [New] reports what is wrong with them.
func Of[T client.Object](children ...Child[T]) *Set[T] { return &Set[T]{children: children} }

// check returns all that is wrong with the children.
func (s *Set[T]) check() error {
	problems := []error{}
	seen := map[string]bool{}
	for _, c := range s.children {
		problems = append(problems, c.check())
		if seen[c.name] {
			problems = append(problems, fmt.Errorf("two children are named %q; give one of them another name", c.name))
		}
		seen[c.name] = true
	}
	if len(s.children) == 0 {
		problems = append(problems, errors.New("children.Of has no children; without any, use loop.New"))
	}
	return errors.Join(problems...)
}

// Result is what a pass did with the children of an object.
type Result struct {
	err    error
	reason string
	again  time.Duration
	deps   []loop.Dep
}

// Pending returns the outcome of a pass that cannot go on, and true, unless all children are as they should be and
// ready, by package health. The outcome names the children that it waits for; their changes cause the next pass.
func (r Result) Pending() (loop.Outcome, bool) {
	switch {
	case r.err != nil && r.reason != "":
		return loop.Fail(r.err).Because(r.reason), true
	case r.err != nil:
		return loop.Fail(r.err), true
	case r.again > 0:
		return loop.AgainAfter(r.again), true
	case len(r.deps) > 0:
		return loop.WaitFor("ChildrenNotReady", r.deps...), true
	}
	return loop.Done(), false
}

// Apply creates, changes and deletes children of r.Obj until they are as the set describes them. Call it once in a pass,
// from Reconcile. It sends no request for a child that is as it should be. One child that cannot be applied does not
// keep the others from it, but nothing is deleted then. Safe to repeat from any point.
func (s *Set[T]) Apply(ctx context.Context, r *loop.Run[T]) Result {
	if s.wiring == nil || s.wiring.client == nil {
		return Result{err: errors.New("the set of children belongs to no controller; make the controller with children.New")}
	}
	p := &pass[T]{wiring: s.wiring, run: r, wanted: map[ref]bool{}, claims: map[ref]bool{}}
	p.owner = owning{client.ObjectKeyFromObject(r.Obj), r.Obj.GetUID()}
	for _, c := range s.children {
		m, err := p.manifest(c, r.Obj)
		if err != nil {
			p.fail("ChildInvalid", err)
			p.unsure = true
			continue
		}
		if m != nil {
			p.wanted[refOf(m)] = true
			p.apply(ctx, c, m)
		}
	}
	if !p.unsure {
		p.memory.keep(p.owner, p.claims)
		p.prune(ctx)
	}
	return p.result()
}

// fail notes that something failed. The first reason counts.
func (p *pass[T]) fail(reason string, err error) {
	if p.res.reason == "" {
		p.res.reason = reason
	}
	p.problems = append(p.problems, err)
}

func (p *pass[T]) result() Result {
	p.res.err = errors.Join(p.problems...)
	return p.res
}

// wait notes what an object lacks.
func (p *pass[T]) wait(r ref, why string) {
	p.res.deps = append(p.res.deps, loop.Dep{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Why: why})
}

// repeat notes that the pass is to be repeated after d at the latest.
func (p *pass[T]) repeat(d time.Duration) {
	if p.res.again == 0 || d < p.res.again {
		p.res.again = d
	}
}
