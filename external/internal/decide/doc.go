// Package decide says what to do next about one external resource, and what users read about it.
// [Next] answers [Facts] with a [Decision]; [Report] turns a decision into state, message,
// conditions and an event. Both are pure: no client, clock, logger or context, so decisions can be
// enumerated, replayed and checked against a model. Whatever acts on them lives in the engine.
//
// The rows of the table are described in docs/decisions.md, and what users see in docs/status.md.
package decide
