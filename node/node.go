// Package node is the interface between packages component and external. A node is a dependent of a
// component that is not stored in the Kubernetes API: an external resource or a function. Renderers add it
// like an object, with the same orders, policies and edges, and the same inventory lists it. A [Driver]
// applies and deletes it.
//
// Authors of components use other functions: external.Nodes returns a Driver for external resources, and
// component.Set.Do adds a function.
//
// # Rules
//
//   - Record first. What is needed to find a node again is recorded before the driver acts on it.
//   - Apply and Delete need only the record. A process that has never seen the manifest can delete the node.
//   - A driver is called when its node may be changed, or when it asked to be called again. Events of
//     Kubernetes objects alone do not call it.
//   - An answer says why a node is not ready.
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

// Driver manages the nodes of one kind. Its methods are called concurrently for different nodes, never
// concurrently for the same node, and again after a crash.
type Driver interface {
	// About describes the driver. It always returns the same.
	About() About
	// Record returns the record of a node with the manifest r.Manifest and the former record r.Record, which
	// is empty for a new node. It is pure. The result must not be empty. It must be equal to r.Record if
	// the record already describes the manifest.
	Record(ctx context.Context, r Request) ([]byte, error)
	// Observed returns the node as it was when it was last ready, which the record contains. It returns nil
	// if the node was never ready.
	Observed(record []byte) (client.Object, error)
	// Apply changes the node to the state that its record describes, or starts to.
	Apply(ctx context.Context, r Request) Answer
	// Delete deletes the node, or starts to. It is called until the answer is Gone.
	Delete(ctx context.Context, r Request) Answer
}

// Starter is implemented by a [Driver] that learns of changes by itself.
type Starter interface {
	// Start is called before all other methods. ctx ends with the process. wake asks for a pass over a
	// component after a delay.
	Start(ctx context.Context, wake func(component types.NamespacedName, after time.Duration))
}

// About describes a [Driver].
type About struct {
	// Object is an empty object of the kind of the nodes. It contains its kind, or the operator's scheme
	// knows its type.
	Object client.Object
	// Forgetful reports that a node whose record is lost cannot be found again, or need not be.
	Forgetful bool
	// Needs are the permissions that the driver requires.
	Needs []loop.Need
	// Problem says why the driver cannot be used. Nil means that it can.
	Problem error
}

// Request describes a node to its driver.
type Request struct {
	// Run is the pass over the component.
	Run Run
	// Component is the component, and ComponentUID its UID.
	Component    types.NamespacedName
	ComponentUID types.UID
	// Key is the key of the node within the component, as in api.InventoryItem. It never changes.
	Key string
	// Record is the node's record in the inventory. For Apply and Delete it is durable.
	Record []byte
	// Manifest is the desired state. It is set only for Record.
	Manifest map[string]any
	// Rendered returns what the renderer returned for the node. Only Apply may call it.
	Rendered func(context.Context) (client.Object, error)
	// Durable returns the record that the API server has, read during this pass, or nil if there is none. An
	// error means that the component has changed meanwhile and the pass must end.
	Durable func(context.Context) ([]byte, error)
	// Asked changes when a user asks for a pass.
	Asked string
	// Paused means that the node may be observed but not changed.
	Paused bool
	// Keep means that Delete leaves the node in place and gives up its ownership.
	Keep bool
}

// Answer is the result of Apply or Delete.
type Answer struct {
	// Record is the new record. Empty means that the record is unchanged.
	Record []byte
	// RecordFirst means that Record must be durable before the driver continues. The same method is called
	// again when it is.
	RecordFirst bool
	// Health is the health of the node.
	Health health.Result
	// Again is the delay until the next call if there is no other reason for one. Zero means that none is
	// needed.
	Again time.Duration
	// Gone means, for Delete, that the node no longer exists.
	Gone bool
	// Err is the error of a failed attempt. The next pass over the component, which is due after a growing
	// delay, repeats the call. With an error, only Record is used of the other fields.
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
