package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// TestModel lets a caller of the package run passes in a world that fails, forgets and interferes, then
// in a kind one. It checks each effect as it happens, against what is real.
func TestModel(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		if problem := walk(t.Context(), seed, Decide, true); problem != "" {
			t.Fatalf("seed %d: %s", seed, problem)
		}
	}
}

// walk returns the first thing that goes wrong in the world of a seed. If it is strict, what could have
// been done and was not is wrong, and so is an attempt before its turn; else only effects are.
func walk(ctx context.Context, seed uint64, decide func([]Node) Plan, strict bool) string {
	w := newWorld(seed)
	w.strict = strict
	w.desire()
	for range 60 {
		p := newPass(w, decide)
		if p.run(ctx); p.problem != "" {
			return p.problem
		}
		w.tick()
	}
	w.kind = true
	if problem := settle(ctx, w, decide); problem != "" {
		return problem
	}
	clear(w.desired)
	return settle(ctx, w, decide)
}

// settle runs passes in a kind world until all is as desired, and one more, which must do nothing.
func settle(ctx context.Context, w *world, decide func([]Node) Plan) string {
	for range 100 {
		w.tick()
		p := newPass(w, decide)
		result := p.run(ctx)
		if p.problem != "" {
			return p.problem
		}
		if result.Plan.Ready {
			return w.settled(newPass(w, decide).run(ctx))
		}
	}
	return "does not converge: " + show(w.nodes())
}

// settled returns what is not as it should be although the plan is ready.
func (w *world) settled(again Result) string {
	if len(again.Done) > 0 {
		return fmt.Sprintf("all was ready, and the next pass did %v", again.Done)
	}
	for key, o := range w.objects {
		s, wanted := w.desired[key]
		switch {
		case !o.ours:
		case !wanted:
			return fmt.Sprintf("%s is left", key)
		case s.node.Purge != nil:
			return fmt.Sprintf("%s is not purged", key)
		case o.version != s.version:
			return fmt.Sprintf("%s has version %d, not %d", key, o.version, s.version)
		}
	}
	for key, s := range w.desired {
		if s.node.Purge == nil && !w.exists(key) {
			return fmt.Sprintf("%s does not exist", key)
		}
	}
	for key := range w.records {
		if _, wanted := w.desired[key]; !wanted {
			return fmt.Sprintf("%s is still recorded", key)
		}
	}
	return ""
}

// pass is one pass of a caller. It writes records when the pass ends, as operators write their status;
// a crash before that loses them.
type pass struct {
	w       *world
	decide  func([]Node) Plan
	mu      sync.Mutex
	pending map[Key]record
	begun   map[attempt]bool
	seen    naive // the facts on which was decided last
	crash   int   // the call during which the process ends
	dead    bool
	problem string
}

func newPass(w *world, decide func([]Node) Plan) *pass {
	p := &pass{w: w, decide: decide, pending: maps.Clone(w.records), begun: map[attempt]bool{}, crash: -1}
	if !w.kind && !w.likely(3) {
		p.crash = w.rng.IntN(6)
	}
	return p
}

var errCall = errors.New("the call failed")

func (p *pass) run(ctx context.Context) Result {
	r := runner{
		decide: p.decided, do: p.do, parallel: 1 + p.w.rng.IntN(3),
		index: map[Key]int{}, attempted: map[attempt]bool{},
	}
	p.w.rng.IntN(2)
	result := r.pass(ctx, p.w.nodes())
	if p.dead || p.problem != "" {
		return result
	}
	for _, n := range result.Nodes {
		if !p.w.strict {
			break
		}
		if a := naive(result.Nodes).may(n); a != None && !p.begun[attempt{n.Key, a}] {
			p.fail("%s of %s could have been done and was not", a, n.Key)
		}
	}
	for key, r := range p.pending {
		if r.completed == 0 && p.w.records[key].completed != 0 {
			delete(p.w.worked, key)
		}
	}
	for key := range p.w.records {
		if _, kept := p.pending[key]; !kept {
			delete(p.w.worked, key)
		}
	}
	p.w.records = p.pending
	return result
}

// decided notes on what was decided, and that the order of nodes has no influence.
func (p *pass) decided(nodes []Node) Plan {
	p.seen = slices.Clone(nodes)
	plan := p.decide(nodes)
	shuffled := slices.Clone(nodes)
	rng := rand.New(rand.NewPCG(uint64(len(p.begun)), 4))
	rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	if !reflect.DeepEqual(plan, p.decide(shuffled)) {
		p.fail("another order, another plan")
	}
	return plan
}

func (p *pass) fail(format string, args ...any) {
	if p.problem == "" {
		p.problem = fmt.Sprintf(format, args...) + "\n" + show(p.seen)
	}
}

func (p *pass) do(_ context.Context, key Key, action Action) (Facts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return Facts{}, errCall
	}
	if p.begun[attempt{key, action}] {
		p.fail("%s of %s twice in a pass", action, key)
	}
	p.begun[attempt{key, action}] = true
	p.check(key, action)
	luck := p.w.rng.IntN(12)
	if p.w.kind {
		luck = 12
	}
	crash := len(p.begun) == p.crash
	if luck == 0 || crash && luck%2 == 0 { // before the effect
		p.dead = crash
		return Facts{}, errCall
	}
	p.effect(key, action)
	if luck == 1 || crash { // after it: the answer is lost
		p.dead = crash
		return Facts{}, errCall
	}
	return p.facts(key, action), nil
}

// facts are those after an action. What is only pending does not count as recorded.
func (p *pass) facts(key Key, action Action) Facts {
	if action == Forget {
		return Facts{Presence: Absent}
	}
	f := p.w.facts(key, p.w.records)
	if s, wanted := p.w.desired[key]; wanted {
		f.Applied = f.Applied || p.pending[key].applied == s.version
	}
	return f
}

// effect does what an action says. Records are written when the pass ends.
func (p *pass) effect(key Key, action Action) {
	s, r := p.w.desired[key], p.pending[key]
	switch action {
	case Record:
		r.node = leaves(s.node)
		p.pending[key] = r
	case Create:
		p.w.objects[key] = &object{version: s.version, immutable: s.immutable, ours: true, health: Health(p.w.rng.IntN(4)), finalizer: !p.w.kind && !p.w.likely(6)}
		r.applied, r.completed = s.version, 0
		p.pending[key] = r
	case Update:
		o := p.w.objects[key]
		if o.immutable || s.immutable {
			p.fail("update of %s, which has to be created again", key)
		}
		o.version, o.health = s.version, Health(p.w.rng.IntN(4))
		r.applied, r.completed = s.version, 0
		p.pending[key] = r
	case Complete:
		r.completed = s.version
		p.pending[key] = r
	case Recreate, Delete:
		p.w.remove(key)
	case Purge:
		p.w.worked[key] = s.version
		p.w.remove(key)
	case Release:
		p.w.objects[key].ours = false
	case Forget:
		delete(p.pending, key)
	case None:
		p.fail("nothing is done to %s", key)
	}
}

// check says what is wrong with an action, judged by what is real.
func (p *pass) check(key Key, action Action) {
	n, found := p.seen.find(key)
	o := p.w.objects[key]
	if !found || n.Tried {
		p.fail("%s of %s, which failed before in this pass", action, key)
	}
	p.inRank(n, action)
	if action == Record {
		return
	}
	if _, recorded := p.w.records[key]; !recorded {
		p.fail("%s of %s without a record", action, key)
	}
	for wanted, s := range p.w.desired {
		if r, recorded := p.w.records[wanted]; !recorded || !leavesAs(r.node, s.node) {
			p.fail("%s of %s before %s is recorded", action, key, wanted)
		}
	}
	mustExist := action != Create && action != Forget
	ours := o != nil && o.ours
	switch {
	case ours && o.unseen:
		p.fail("%s of %s, which is not observed", action, key)
	case mustExist && !ours, action == Create && o != nil, action == Forget && ours:
		p.fail("%s of %s, which is %+v", action, key, o)
	case ours && o.leaving && action != Release:
		p.fail("%s of %s, which is leaving", action, key)
	case ours && o.held && slices.Contains([]Action{Recreate, Purge, Delete}, action):
		p.fail("%s of %s, which is held", action, key)
	}
	switch action {
	case Create, Update, Recreate:
		p.checkApply(key, action)
	case Complete, Purge:
		p.checkPurge(key, action)
	case Delete, Release:
		p.checkLeave(key, action)
	case None, Record, Forget:
	}
}

// inRank finds another node of the same wave that comes first and could.
func (p *pass) inRank(n Node, action Action) {
	wave := func(n Node, a Action) []int {
		switch a {
		case Delete, Release:
			return []int{2, p.seen.wave(n, nil), n.DeleteRank}
		case Complete, Purge:
			return []int{1, p.seen.end(n), n.DeleteRank}
		case None, Record, Create, Update, Recreate, Forget:
		}
		return []int{0, n.Apply, n.Rank}
	}
	if !p.w.strict {
		return
	}
	mine := wave(n, action)
	for _, m := range p.seen {
		a := p.seen.may(m)
		if a == None || a == Forget || a == Record || p.begun[attempt{m.Key, a}] {
			continue
		}
		if theirs := wave(m, a); slices.Equal(theirs[:2], mine[:2]) && theirs[2] < mine[2] {
			p.fail("%s of %s before %s of %s", action, n.Key, a, m.Key)
		}
	}
}

// checkApply finds what a node must not be applied before.
func (p *pass) checkApply(key Key, action Action) {
	s := p.w.desired[key]
	if s.version == 0 {
		p.fail("%s of %s, which is not wanted", action, key)
		return
	}
	if action == Create && p.w.worked[key] == s.version {
		p.fail("%s of %s, which has done its work", action, key)
	}
	n, _ := p.seen.find(key)
	for _, need := range s.node.Needs {
		other, _ := p.seen.find(need)
		repairs := n.Applied && other.Presence == Present
		if !p.w.ready(p.w.desired[need], p.w.records) && !repairs {
			p.fail("%s of %s, which needs %s", action, key, need)
		}
	}
	if !n.Applied {
		p.checkWaves(key, action, s.node.Apply)
	}
}

// checkWaves finds a wanted node of an earlier wave that is not ready, or not purged.
func (p *pass) checkWaves(key Key, action Action, wave int) {
	for _, other := range slices.Sorted(maps.Keys(p.w.desired)) {
		s := p.w.desired[other]
		if s.node.Apply < wave && !p.w.ready(s, p.w.records) {
			p.fail("%s of %s before %s is ready", action, key, other)
		}
		if s.node.Purge != nil && p.seen.end(s.node) < wave && (!p.w.completed(s, p.w.records) || p.w.exists(other)) {
			p.fail("%s of %s before %s is purged", action, key, other)
		}
	}
}

// checkPurge finds what must be ready before a node has done its work.
func (p *pass) checkPurge(key Key, action Action) {
	s := p.w.desired[key]
	if s.node.Purge == nil && p.w.records[key].completed != s.version {
		p.fail("%s of %s, which is to stay", action, key)
		return
	}
	if action == Purge {
		if p.w.records[key].completed != s.version {
			p.fail("%s of %s before that is recorded", action, key)
		}
		return
	}
	for _, other := range p.w.desired {
		if other.node.Apply <= p.seen.end(s.node) && !p.w.ready(other, p.w.records) {
			p.fail("%s of %s before %s is ready", action, key, other.node.Key)
		}
	}
}

// checkLeave finds what must be ready, or gone, before a node goes.
func (p *pass) checkLeave(key Key, action Action) {
	n := p.w.records[key].node
	if _, wanted := p.w.desired[key]; wanted || n.Orphan != (action == Release) {
		p.fail("%s of %s, which is wanted or to be treated otherwise", action, key)
	}
	p.checkWaves(key, action, never)
	for _, other := range slices.Sorted(maps.Keys(p.w.records)) {
		m := p.w.records[other].node
		if _, wanted := p.w.desired[other]; wanted || !p.w.exists(other) || other == key {
			continue
		}
		switch { // needs go to smaller keys: there are no cycles
		case slices.Contains(m.Needs, key):
			p.fail("%s of %s, which %s needs", action, key, other)
		case cmp.Compare(m.Delete, n.Delete) < 0 && p.seen.wave(m, nil) < p.seen.wave(n, nil):
			p.fail("%s of %s before %s of an earlier wave is gone", action, key, other)
		}
	}
}
