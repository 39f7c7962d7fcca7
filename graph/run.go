package graph

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
)

// Options configure [Run]. The zero value suits most.
type Options struct {
	// Parallel is the maximum number of concurrent steps. Zero means 16.
	Parallel int
}

// Result says what [Run] did and what is left to do.
type Result struct {
	// Nodes are the nodes with their last facts, in the order in which they were given.
	Nodes []Node
	// Plan is the last plan. Its Steps are empty unless Run was stopped, or a step succeeded and returned
	// facts that do not show it.
	Plan Plan
	// Done are the steps that were attempted, in the order of the plan.
	Done []Step
	// Errors are those of the attempts that failed.
	Errors map[Key]error
}

// PanicError is the error of a step that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error omits the stack, which differs from run to run.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Run decides, does the steps of the first turn concurrently, replaces the facts of their nodes with
// those that do returned, and decides again, until nothing more can be done now. It does not change nodes.
//
// do is called from several goroutines, at most once for each node and action. If it returns an error, the
// facts of the node are kept and the node is not tried again (Tried). If the success of a step is not
// durable yet, do returns the old facts: for example if the caller writes a record at the end of its pass.
//
// When ctx is done, no further step is started, and Run returns when running steps have ended.
func Run(ctx context.Context, nodes []Node, do func(ctx context.Context, key Key, action Action) (Facts, error), o Options) Result {
	r := runner{decide: Decide, do: do, parallel: o.Parallel, index: make(map[Key]int, len(nodes)), attempted: map[attempt]bool{}}
	if r.parallel <= 0 {
		r.parallel = 16
	}
	return r.pass(ctx, nodes)
}

func (r *runner) pass(ctx context.Context, nodes []Node) Result {
	r.result = Result{Nodes: slices.Clone(nodes), Errors: map[Key]error{}}
	for i, n := range nodes {
		r.index[n.Key] = i
	}
	for {
		r.result.Plan = r.decide(r.result.Nodes)
		turn := r.turn(r.result.Plan.Steps)
		if len(turn) == 0 || ctx.Err() != nil {
			return r.result
		}
		r.run(ctx, turn)
	}
}

type runner struct {
	decide    func([]Node) Plan
	do        func(ctx context.Context, key Key, action Action) (Facts, error)
	parallel  int
	index     map[Key]int
	attempted map[attempt]bool
	result    Result
}

type attempt struct {
	key    Key
	action Action
}

// turn returns the first turn's steps that were not attempted.
func (r *runner) turn(steps []Step) []Step {
	var turn []Step
	for _, s := range steps {
		if len(turn) > 0 && s.Turn != turn[0].Turn {
			break
		}
		if !r.attempted[attempt{s.Key, s.Action}] {
			turn = append(turn, s)
		}
	}
	return turn
}

// run does the steps of a turn. Answers are taken over when all are known.
func (r *runner) run(ctx context.Context, turn []Step) {
	type answer struct {
		begun bool
		facts Facts
		err   error
	}
	answers := make([]answer, len(turn))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(r.parallel, len(turn)) {
		workers.Go(func() {
			for i := range next {
				if ctx.Err() != nil {
					continue
				}
				answers[i].begun = true
				answers[i].facts, answers[i].err = r.call(ctx, turn[i])
			}
		})
	}
	for i := range turn {
		next <- i
	}
	close(next)
	workers.Wait()
	for i, s := range turn {
		if !answers[i].begun {
			continue
		}
		r.attempted[attempt{s.Key, s.Action}] = true
		r.result.Done = append(r.result.Done, s)
		n := &r.result.Nodes[r.index[s.Key]]
		if err := answers[i].err; err != nil {
			n.Tried = true
			r.result.Errors[s.Key] = err
			continue
		}
		n.Facts = answers[i].facts
	}
}

// call does one step, on a goroutine of its own: it may end it.
func (r *runner) call(ctx context.Context, s Step) (facts Facts, err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = fmt.Errorf("%s of %q ended its goroutine; return instead", s.Action, s.Key)
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		facts, err = r.do(ctx, s.Key, s.Action)
	}()
	<-ended
	return facts, err
}
