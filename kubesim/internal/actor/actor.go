// Package actor plays the controllers of a cluster whose work operators rely on: the
// garbage collector and the deletion of namespaces. They do nothing by themselves; a
// scheduler asks what they could do and lets them do one thing at a time.
package actor

import (
	"context"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Actors are the controllers of one world.
type Actors struct {
	server *apiserver.Server
	db     *store.DB
}

// Action is one write that an actor wants to make now.
type Action struct {
	// By is the actor: "garbage collector" or "namespace controller".
	By string
	// What says it in words, the same in equal runs: "delete secrets a/b, whose owner is gone".
	What string
	do   func(context.Context) error
}

// Do makes the write. An action overtaken by other changes does nothing and is no error.
func (a Action) Do(ctx context.Context) error { return a.do(ctx) }

// New returns the actors of a world.
func New(server *apiserver.Server, db *store.DB) *Actors { return &Actors{server, db} }

// Enabled returns what the actors want to do now, in an order that is the same in equal
// runs; any of it may come first. It costs next to nothing while the world does not change.
func (a *Actors) Enabled() []Action { return nil }
