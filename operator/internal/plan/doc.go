// Package plan runs one pass of a controller without changing anything, and describes what the pass would have done.
//
// The pass is that of the operator: the same controller, with the same code. A guard is between it and the API server.
// Reads go through. Each write is sent as a dry run, so that defaults, validation, admission and permissions count, and is
// recorded with the fields that it would change. The object of the pass is an exception: the guard answers for it from a
// copy, so that the pass sees its own finalizer and record, and so that the object can be one that exists only in a
// file. Packages external and component call nothing that changes another system while loop.IsDryRun is true.
//
// [Run] runs a pass and returns a [Plan].
package plan
