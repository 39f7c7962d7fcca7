package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
)

// Nodes is a [node.Driver] that manages external resources which are dependents of components. For each, the
// engine makes its passes over an object that exists nowhere but in the record of the node.
type Nodes struct {
	engine  *Engine
	problem error

	mu sync.Mutex
	// known are the objects by UID, and owners the components by the names of their objects.
	known  map[types.UID]knownNode
	owners map[objectKey]map[types.NamespacedName]bool
	wake   func(component types.NamespacedName, after time.Duration)
}

// knownNode is an object of a node, and its keys in the index.
type knownNode struct {
	obj       Object
	component types.NamespacedName
	keys      []string
}

var (
	_ node.Driver  = (*Nodes)(nil)
	_ node.Starter = (*Nodes)(nil)
)

// NewNodes returns the driver of an engine, which must not be used for anything else. problem is why it cannot
// be used; nil if it can.
func NewNodes(e *Engine, problem error) *Nodes {
	e.unlocked, e.driver.LateInit = true, nil
	n := &Nodes{engine: e, problem: problem, known: map[types.UID]knownNode{}, owners: map[objectKey]map[types.NamespacedName]bool{}}
	e.clients.wake = n.woken
	e.abandoned.returned = func(key objectKey) { n.woken(key, 0) }
	return n
}

// About implements [node.Driver].
func (n *Nodes) About() node.About {
	needs := []loop.Need{clusterNeed()}
	return node.About{Object: n.engine.driver.New(), Needs: needs, Problem: cmp.Or(n.problem, n.engine.problem)}
}

// DryRunSafe reports that the engine calls no method of its driver that changes anything; see [loop.DryRunner].
func (n *Nodes) DryRunSafe() bool { return true }

// Start implements [node.Starter].
func (n *Nodes) Start(ctx context.Context, wake func(types.NamespacedName, time.Duration)) {
	n.mu.Lock()
	n.wake = wake
	n.mu.Unlock()
	n.engine.clients.endWith(ctx)
}

// woken wakes the components of the objects with a name.
func (n *Nodes) woken(key objectKey, after time.Duration) {
	n.mu.Lock()
	wake := n.wake
	var owners []types.NamespacedName
	for owner := range n.owners[key] {
		owners = append(owners, owner)
	}
	n.mu.Unlock()
	if wake == nil {
		return
	}
	for _, owner := range owners {
		wake(owner, after)
	}
}

// learn notes that there is a node.
func (n *Nodes) learn(v *virtual) {
	keys, key := n.engine.IndexKeys(v.obj), client.ObjectKeyFromObject(v.obj)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[v.obj.GetUID()] = knownNode{obj: copyOf(v.obj), component: v.request.Component, keys: keys}
	if n.owners[key] == nil {
		n.owners[key] = map[types.NamespacedName]bool{}
	}
	n.owners[key][v.request.Component] = true
}

// unlearn notes that a node is gone.
func (n *Nodes) unlearn(v *virtual) {
	key := client.ObjectKeyFromObject(v.obj)
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.known, v.obj.GetUID())
	if delete(n.owners[key], v.request.Component); len(n.owners[key]) == 0 {
		delete(n.owners, key)
	}
}

// Record implements [node.Driver].
func (n *Nodes) Record(ctx context.Context, r node.Request) ([]byte, error) {
	obj, err := n.engine.fromManifest(r.Manifest)
	if err != nil {
		return nil, err
	}
	if len(r.Record) > 0 {
		return n.rerecord(obj, r)
	}
	obj.SetUID(uidOf(r))
	obj.SetGeneration(1)
	v := &virtual{nodes: n, request: r, obj: obj}
	if err := n.engine.Prepare(ctx, v); err != nil {
		return nil, err
	}
	return kept{}.with(v.obj)
}

// rerecord returns the record with another manifest.
func (n *Nodes) rerecord(obj Object, r node.Request) ([]byte, error) {
	k, before, err := n.restore(r.Record)
	if err != nil {
		return nil, err
	}
	obj.SetGeneration(before.GetGeneration())
	if !sameSpec(obj, before) {
		obj.SetGeneration(before.GetGeneration() + 1)
	}
	carry(before, obj)
	return k.with(obj)
}

// Observed implements [node.Driver].
func (n *Nodes) Observed(record []byte) (client.Object, error) {
	k, obj, err := n.restore(record)
	if err != nil || !k.Ready {
		return nil, err
	}
	return obj, nil
}

// Apply implements [node.Driver].
func (n *Nodes) Apply(ctx context.Context, r node.Request) node.Answer {
	v, err := n.open(r, false)
	if err != nil {
		return node.Answer{Err: err}
	}
	n.learn(v)
	o := n.engine.Reconcile(ctx, v)
	if v.later {
		return v.first()
	}
	ready := v.report.Ready() != nil && !o.Retried() && o.Err() == nil && v.isReady()
	next, err := v.record(ready)
	switch {
	case err != nil:
		return node.Answer{Err: err}
	case o.Retried():
		return node.Answer{Record: next, Err: o.Err()}
	}
	a := node.Answer{Record: next, Again: cmp.Or(o.Delay(), n.engine.DriftInterval())}
	switch {
	case ready:
		a.Health = health.Result{Status: health.Current}
	case o.Err() != nil:
		a.Health = health.Result{Status: health.Failed, Why: o.Err().Error()}
	default:
		a.Health = health.Result{Status: health.InProgress, Why: cmp.Or(v.report.Message, health.NotReady)}
		a.Again = cmp.Or(o.Delay(), waitingAgain)
	}
	return a
}

// waitingAgain is when a node is looked at again that waits for something for which nothing wakes it.
const waitingAgain = 10 * time.Second

// Delete implements [node.Driver].
func (n *Nodes) Delete(ctx context.Context, r node.Request) node.Answer {
	v, err := n.open(r, true)
	if err != nil {
		return node.Answer{Err: err}
	}
	n.learn(v)
	o := n.engine.Cleanup(ctx, v)
	switch {
	case v.later:
		return v.first()
	case o.Err() != nil:
		return node.Answer{Err: o.Err()}
	case o.Done():
		n.unlearn(v)
		return node.Answer{Gone: true}
	}
	return node.Answer{
		Health: health.Result{Status: health.Terminating, Why: cmp.Or(v.report.Message, "is being deleted")},
		Again:  cmp.Or(o.Delay(), mostPoll),
	}
}
