// Package simcloud is an external API for tests of operators: a small cloud that keeps items, by HTTP, and that can be as
// slow, forgetful, overloaded and unreliable as real ones. It has names that the caller chooses or ids that it assigns,
// tags, idempotency tokens, operations, keys that only creates show, a login, reads that lag behind writes, pages and quotas;
// faults can be injected, and it keeps a log of the calls.
//
// Create a [Cloud] with [New] and serve it with net/http/httptest, or run it in a process of its own with [Start], which
// survives whatever the test does to its operator. Drivers use [Client]:
//
//	POST   /items             creates an item; with a name that is taken: 409
//	GET    /items?tag=k=v     lists items, by pages
//	GET    /items/{id}        404 if there is none
//	PUT    /items/{id}        replaces its properties, not its tags
//	PUT    /items/{id}/tags   replaces its tags
//	DELETE /items/{id}        404 if there is none
//	GET    /operations/{id}   the state of an operation
//
// Everything is in memory. Nothing of it is meant for production.
package simcloud
