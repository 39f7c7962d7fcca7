// Package external reconciles custom resources that each stand for one thing outside the
// cluster: a stream, a database, a DNS record.
//
// An author writes a [Driver]: how to look at a thing, how it differs from the spec, how to
// create and to delete it, and, as an [Updater], how to change it. There is no Kubernetes
// in it. [New] makes the controller. What the package does beyond calling the driver:
//
//   - It decides by a pure function of what was observed and recorded, a table of 32 rows; each
//     pass asks it, acts, and asks again. Traces name the row that decided: "D-13".
//   - It records before it acts. A marker in the annotation trimtab.dev/external is durable
//     before a create is called, and every thing carries a [Mark]; so a crash at any
//     instruction leaks nothing and makes nothing twice, and what belongs to others is not
//     touched.
//   - It believes no absence. Nothing is created again and no finalizer goes until the API
//     has had time to show what it made ([Options.CreateGrace]).
//   - It obeys. Annotations on an object pause it, limit it to parts of create, update and
//     delete, say whether what exists is taken over, and leave the thing behind. What they
//     say wrongly means the least.
//   - It tells. Ready, Creating, Updating, Deleting and Failed say what goes on, and each
//     message ends with the way out. What works, but not as the spec asks for now, stays
//     Ready with the observedGeneration of the spec that it was last seen to be as.
//
// Errors of the API have a [Class], which says whether to retry, to wait, or to leave it to
// a person: by their maker ([Invalid], [Throttled] and so on), by the driver as a
// [Classifier], or by their HTTP status.
//
// What calls this package, visit by visit, is package loop. Start with the example of the
// package, then read [Driver].
package external
