// Package engine manages external resources: in each pass over an object it gathers facts, asks
// [decide.Next] what to do, does it, and asks again until nothing is left to do.
//
// It has no type parameters. A driver arrives as the functions of a [Driver]; package external
// keeps the types. The engine decides nothing itself: what happens next, and what users read, is
// in package decide.
//
// A pass starts in pass.go. It is made of layers, and each calls only what is below it:
//
//   - reporter (report.go, message.go): status, events, and when the next pass is due
//   - caller (calls.go): calls of the external API and what their answers mean
//   - resource (resource.go, claims.go, reflect.go): the external resource as this pass has seen it,
//     who claims it, and how status shows it
//   - recording (recording.go): writes of the record
//   - identity (identity.go): which resource is the object's, according to record and spec
//   - access (access.go): the client, and whether it may be used now
//   - managed (managed.go): the object itself, and its track, which is what the process remembers of it
//     between passes
package engine
