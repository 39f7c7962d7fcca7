// Package external manages resources outside the cluster, each through one custom resource: a
// stream, a database, a DNS record.
//
// You write a [Driver] for the external API: how to observe a resource, how it differs from the
// spec, how to create and delete it and, with an [Updater], how to change it. A driver contains no
// Kubernetes code. [New] turns it into a controller, which adds the rest:
//
//   - Crash safety. A record of the resource is stored on the object before Create is called, and
//     each resource carries an ownership [Mark]. A crash at any instruction leaks nothing, creates
//     nothing twice, and touches nothing that belongs to another owner.
//   - Proof of absence. Nothing is created again, and no finalizer is removed, until the API has
//     had time to show what it created ([Options.CreateGrace]).
//   - Policies. Annotations on an object pause it, restrict it to some of create, update and
//     delete, say whether an existing resource is adopted, and keep the resource when the object
//     is deleted. An annotation that cannot be understood has the safest meaning.
//   - Status. The conditions Ready, Creating, Updating, Deleting and Failed describe what is going
//     on, and messages say what to do. A resource that works but does not match the current spec
//     stays Ready with the observedGeneration of the spec that it last matched.
//   - Operations. A change that takes minutes occupies no worker. Its [Operation] is recorded and
//     followed across restarts, and the status says why it fails.
//   - Explained decisions. What to do next is decided by a table of 32 rows. Traces name the row,
//     as in "D-13"; docs/decisions.md describes each.
//
// Each error of the external API has a [Class], which determines whether the call is retried. The
// class is declared by whoever returns the error ([Invalid], [Throttled] and so on), by the driver
// as a [Classifier], or derived from the HTTP status.
//
// Start with the package example, then read [Driver] and [Options]. Package loop runs the
// controller.
package external
