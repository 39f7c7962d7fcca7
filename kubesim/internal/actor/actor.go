// Package actor plays the controllers of a cluster whose work operators rely on: the
// garbage collector, the deletion of namespaces, the protection of volumes in use. They do nothing by themselves; a
// scheduler asks what they could do and lets them do one thing at a time.
package actor

import (
	"context"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Actors are the controllers of one cluster. They and their actions are not safe for concurrent use.
type Actors struct {
	graph   *graph
	enabled []Action
}

// The actors, as [Action.By] names them.
const (
	GarbageCollector    = "garbage collector"
	NamespaceController = "namespace controller"
	VolumeProtection    = "volume protection"
)

// Action is one write that an actor wants to make now.
type Action struct {
	// By is the actor: [GarbageCollector] or another.
	By string
	// What says it in words, the same in equal runs: "delete secrets a/b, whose owner is gone".
	What string
	do   func(context.Context) error
}

// Do makes the write. An action overtaken by other changes does nothing and is no error.
func (a Action) Do(ctx context.Context) error { return a.do(ctx) }

// New returns the actors of a cluster.
func New(server *apiserver.Server, db *store.DB) *Actors {
	return &Actors{graph: newGraph(server, db)}
}

// Enabled returns what the actors want to do now, in an order that is the same in equal
// runs; any of it may come first. It costs next to nothing while the cluster does not change.
//
// An action that was done and changed nothing, or failed, is not offered again before
// something else changes.
func (a *Actors) Enabled() []Action {
	if a.graph.update() {
		a.enabled = nil
		collector := collector{a.graph, newCaller(a.graph, "generic-garbage-collector")}
		namespaces := namespaces{a.graph, newCaller(a.graph, "namespace-controller")}
		protection := protection{a.graph, newCaller(a.graph, "pvc-protection-controller")}
		restless := slices.Collect(inOrder(a.graph.restless))
		for _, n := range restless {
			a.add(GarbageCollector, collector.wants(n))
		}
		for _, n := range restless {
			a.add(NamespaceController, namespaces.wants(n))
		}
		for _, n := range restless {
			a.add(VolumeProtection, protection.wants(n))
		}
	}
	return slices.Clone(a.enabled)
}

// write is one write that an actor wants to make.
type write struct {
	what string
	do   func(context.Context) error
}

func (a *Actors) add(by string, writes []write) {
	for _, w := range writes {
		action := Action{By: by, What: w.what}
		action.do = func(ctx context.Context) error {
			a.enabled = slices.DeleteFunc(a.enabled, func(o Action) bool { return o.By == by && o.What == w.what })
			return overtaken(w.do(ctx))
		}
		a.enabled = append(a.enabled, action)
	}
}
