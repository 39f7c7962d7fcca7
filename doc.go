// Package trimtab is a framework for Kubernetes operators. You can kill such an operator at any
// instruction, and nothing is leaked, duplicated or lost. When an object is not Ready, its status says
// why. This package contains no code. Its example is a complete operator.
//
// There are four kinds of operators. They share the loop, the conditions and the binary:
//
//   - A custom resource has a few Kubernetes objects as children. You write a function for each, and package
//     children keeps them as described.
//   - A custom resource stands for a set of Kubernetes objects. You write a Renderer, and package component
//     keeps the objects as rendered.
//   - A custom resource stands for something outside the cluster. You write a Driver, and package external
//     keeps the external resource as the spec says.
//   - For everything else you write a Reconciler. It returns an Outcome, and package loop writes the status.
//
// # The life of an object
//
// This section follows one object through an operator of external resources, which manages DNS records. Its
// author wrote a kind, Record, and a driver that calls the API of a DNS provider. A user applies a Record.
//
// The object arrives. A watch event starts a pass of the loop (package loop). The loop reads the
// object from its cache, checks that the cache contains its own last write, and adds the finalizer.
// The same write adds the record: an annotation with the name under which the external resource will
// be created, which also says that the resource may exist from now on. Nothing has been created yet.
// If the process is killed at any later point, the next process finds the resource by this record.
//
// A decision is made. Package external asks the driver to Observe. The result, the record, and the
// permissions from annotations are facts. A pure function maps them to an action. It is a table of 32 rows,
// so every decision can be tested, traced and looked up. Here the resource is missing, its absence is proven,
// and row 13 says: create.
//
// The action is carried out. The driver's Create gets the name from the record, and a mark for the
// resource that says who owns it. The engine observes again, unless the API returned the resource with
// its answer, and finds that it has the mark and matches the spec: row 17, Succeeded. The loop writes
// the status once, with Ready=True. All this took two writes to Kubernetes and one call that changed
// something in the API.
//
// The spec changes. Compare reports the differences, such as "spec.ttl 300 → 60", and whether each
// needs an update in place, a new resource, or someone to act. The update is made, observed and
// reported.
//
// Someone changes the resource in the API. Every ten minutes, a resource in sync is observed, which
// costs one read and no request to Kubernetes. If it differs, it is corrected, and an event says what
// differed. If it is gone, a new incarnation is recorded and created. A resource that belongs to
// another object is not changed; the status says who owns it, and how to take it over.
//
// Something fails. The message says what failed, on which resource, and what happens next. Retries
// are delayed exponentially, per object; the operator's own writes do not reset the delay. If only a
// person can fix an error, for example because the API refuses the spec, nothing is retried until
// something changes.
//
// The process is killed between the create and its answer. The next process finds the record, which
// says that a create may have happened, and observes the recorded name until it finds the resource or
// has proven its absence. It never creates a second one.
//
// The object is deleted. The driver's Delete is called until Observe reports that the resource is
// missing and no earlier create can still make it appear. Then the finalizer is removed.
//
// # Where to look next
//
//   - docs/first-operator.md has every command from an empty folder to the first Ready object.
//   - docs/children.md and docs/components.md describe operators of Kubernetes objects.
//   - The example below, samples/folder and samples/guestbook are small but complete operators.
//   - Package operator makes the binary, which prints its own CRDs, roles and manifests.
//   - Package api defines what ends up in your CRDs: status, conditions, annotations.
//   - Package trace records what happened and why, for logs, tests and /debug/trace.
//   - Package testenv provides your tests with a real API server.
//   - samples/nats is an operator of realistic size.
package trimtab
