// Package node is what packages component and external know of each other: a dependent of a component that
// is not a Kubernetes object. It is rendered like one, in the same set and with the same orders, policies and
// edges, and is recorded in the same inventory. A [Driver] does what is to be done to it.
//
// Authors of components do not use this package. external.Nodes returns a Driver for external resources,
// and [component.Set.Do] adds a function.
//
// # Rules
//
//   - What is needed to find a node again is recorded before the driver acts. A driver never acts on what
//     its record does not say.
//   - Apply and Delete need nothing but the record. A process that has never seen the manifest can delete
//     the node.
//   - A driver is called only if its node may be changed now, and when it asked to be called again. An event
//     of a Kubernetes object calls no driver.
//   - A driver always says why a node is not ready.
package node

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
)

// Driver manages the nodes of one kind. Its methods are called for several nodes at a time, but never for one
// node twice at a time, and again after a crash.
type Driver interface {
	// About describes the driver. It always returns the same.
	About() About
	// Record returns the record of a node whose manifest is r.Manifest and whose record so far is r.Record,
	// which is empty for a new node. It changes nothing. The result must not be empty, and must be
	// r.Record if that says what r.Manifest says.
	Record(ctx context.Context, r Request) ([]byte, error)
	// Observed returns the node as its record says that it was last ready, nil if it never was.
	Observed(record []byte) (client.Object, error)
	// Apply brings the node to what its record says, or starts to.
	Apply(ctx context.Context, r Request) Answer
	// Delete deletes the node, or starts to. It is called until the answer is Gone.
	Delete(ctx context.Context, r Request) Answer
}

// Starter is a [Driver] that knows when something has changed.
type Starter interface {
	// Start is called before all other methods. ctx ends with the process. wake has the nodes of a
	// component looked at after a time.
	Start(ctx context.Context, wake func(component types.NamespacedName, after time.Duration))
}

// About describes a [Driver].
type About struct {
	// Object is an empty object of the kind of the nodes. Unless it says its kind, the operator's scheme
	// must know it.
	Object client.Object
	// Forgetful: without its record a node cannot be found, or need not be.
	Forgetful bool
	// Needs are the permissions that the driver requires.
	Needs []loop.Need
	// Problem is why the driver cannot be used; nil if it can.
	Problem error
}

// Request is what a driver gets to know of a node.
type Request struct {
	// Run is the pass over the component.
	Run Run
	// Component is the component, and ComponentUID its UID.
	Component    types.NamespacedName
	ComponentUID types.UID
	// Key is the key of the node within the component, as in api.InventoryItem. It never changes.
	Key string
	// Record is what the inventory says of the node. Apply and Delete get one that is durable.
	Record []byte
	// Manifest is what is desired. Only Record gets it.
	Manifest map[string]any
	// Rendered returns what the renderer returned for the node. Only Apply may call it.
	Rendered func(context.Context) (client.Object, error)
	// Durable returns the record as the API server had it during this pass, nil if there is none. The
	// error says that the component has changed meanwhile, and the pass must end.
	Durable func(context.Context) ([]byte, error)
	// Asked changes when a user asks for a pass.
	Asked string
	// Paused: the node may be looked at, not changed.
	Paused bool
	// Keep: instead of being deleted, the node is left as it is and given up.
	Keep bool
}

// Answer is what a driver did.
type Answer struct {
	// Record is the new record. Empty means that it is as it was.
	Record []byte
	// RecordFirst: nothing more is done before Record is durable. The same method is called again then.
	RecordFirst bool
	// Health is that of the node.
	Health health.Result
	// Again is when to call the driver again if nothing else happens. Zero means never.
	Again time.Duration
	// Gone: the node does not exist any more. Only of Delete.
	Gone bool
	// Err is why the attempt failed. It is repeated with the next pass over the component, which comes
	// after a delay that grows. Record counts nevertheless; all else has no meaning then.
	Err error
}

// Run is a pass over a component; a [loop.Run] implements it.
type Run interface {
	Reader
	// Terms returns the operator's settings.
	Terms() loop.Terms
	// Retry returns which retry this pass is.
	Retry() loop.RetryInfo
	// Event records a Kubernetes event about the component.
	Event(kind, reason, note string)
	// Log returns the logger of the pass.
	Log() logr.Logger
}

// Reader is how a pass reads the cluster.
type Reader interface {
	// Client reads from the cache.
	Client() client.Client
	// Live reads from the API server.
	Live() client.Reader
}
