// Package verify is another way to write the driver of an external resource: four methods that each return one word. It has
// the shape of Operatify (https://github.com/operatify/operatify), so that its users find what they know.
//
// You write a [ResourceManager]: Verify says in one of seven words how the resource is, and Create, Update and Delete say
// whether they are done. [New] turns it into a controller. It is a thin layer over package external, all of whose guarantees
// hold: what may be called when is decided by the same table, whatever happens in between.
//
// Choose package external if the API has ids of its own, idempotency tokens, operations, credentials per object or
// connection details, or if users are to see which fields differ.
//
// # States
//
// The state in the status of an object is one of nine. It is shown, and nothing depends on it:
//
//	Pending      a dependency is missing or not ready
//	Creating     Create is being called
//	Verifying    Create or Update is done, and Verify has yet to return Ready
//	Updating     Update is being called
//	Recreating   the resource is deleted because it has to be created again
//	Completing   Options.OnSuccess is being called
//	Succeeded    Verify has returned Ready
//	Failed       see the message
//	Terminating  the object is being deleted
//
// # For those who come from Operatify
//
// These differ on purpose:
//
//   - A resource that exists before its object is not taken over unless annotation trimtab.dev/adoption allows it.
//   - An object that is being deleted keeps its finalizer until Verify has returned Missing, whatever fails meanwhile.
//   - A resource is only deleted in order to recreate it if the object may also create.
//   - A failed call is repeated with growing delays, and Missing is not believed in the first seconds after a create, nor
//     are more than three updates made that change nothing.
//   - While Verify returns InProgress or Deleting, the state is Verifying, and Ready is False.
//   - The annotation last-applied-spec has digests instead of long values and of what is in a field named like a secret.
//   - Dependencies are found by role, not by name, and Delete gets them, too.
//   - The durations in [Options] are durations; zero means the default, and a negative value means never.
package verify
