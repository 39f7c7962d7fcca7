// Package trimtab is the front door: it holds no code, only this walk and one whole operator
// as an example. trimtab is a library for Kubernetes operators that can be killed at any
// instruction and leave nothing leaked, duplicated or lost, and that say why when something
// is not Ready.
//
// # One object's life
//
// Take an operator of DNS records, as in the example. Its author wrote a kind, Record, and a
// driver of five methods that call the vendor's API. Somebody applies a Record.
//
// The object comes in. A watch wakes the loop (package loop), which reads the object from
// its cache, checks that the cache is not behind its own last write, and puts the finalizer
// on. In the same write goes the record, an annotation: under which name the thing will
// be created, and that from now on it may exist. Nothing outside has happened yet. Whatever
// kills the process later, the next one reads there where to look.
//
// A decision is made. The engine of external things (package external) asks the driver to
// Observe. What came of that, what the record says and what people allowed by annotations
// are the facts, and package external answers facts with an action. It is a function without
// clock, client or memory, a table of 32 rows, so each answer can be tested, traced and looked
// up. Here the thing is missing, that is proven, and row 13 says: create.
//
// It is done. The driver's Create gets the name from the record and a mark to put on the
// thing, which says whose it is. The engine looks again and finds the thing there, marked as
// ours and as asked for: row 17, Succeeded. The loop writes status once, with Ready true.
// That was one object: two writes to Kubernetes and one call that changed the outside.
//
// The spec changes. Compare names the differences, "spec.ttl 300 → 60", and what each
// takes: an Update in place, a re-creation, or a person. The update goes out, is seen to have
// worked, and is reported.
//
// Somebody changes the thing behind our back. Every ten minutes a thing in sync is looked at,
// which is one read and no request to Kubernetes. If it differs it is put right, with an
// event that says what differed. If it is gone, a new incarnation is recorded and created. A
// thing that others own is left alone, and Ready says who owns it and how to take it over.
//
// Something fails. The message says what failed, on what, and what happens next; retries come
// exponentially later, per object, and are not reset by our own writes. An error that only a
// person can mend (the API refuses the spec) is not retried at all until something changes.
//
// The process dies between the create and its answer. The next one finds the record, which
// says that a create may have happened, looks under the recorded name, and finds the thing or
// its absence. It never creates a second one, because the name and the mark are the same.
//
// The object is deleted. The driver's Delete is called until Observe says that the thing is
// missing and nothing of ours can still bring it into sight. Only then does the finalizer go.
//
// # Where to look next
//
//   - The example below, then samples/folder: a whole operator in sixty lines that runs.
//   - Package external for things outside the cluster: Driver is what you write, Options
//     what you can tune.
//   - Package loop for everything else: return an Outcome, never write status yourself.
//   - Package operator makes the binary, which prints its own CRDs, roles and manifests.
//   - Package api holds what ends up in your CRDs: status, conditions, annotations.
//   - Package trace is what happened and why, the same in logs, tests and /debug/trace.
//   - Package testenv gives your tests a real API server.
//   - samples/nats is an operator of full size.
package trimtab
