// Package engine manages external resources: in each pass over an object it gathers facts, asks
// [decide.Next] what to do, does it, and asks again until nothing is left to do.
//
// It has no type parameters. A driver arrives as the functions of a [Driver]; package external
// keeps the types. The engine decides nothing itself: what happens next, and what users read, is
// in package decide.
//
// A pass starts in pass.go. Calls of the external API are in calls.go, and what is known of the
// resource is in state.go. What a process remembers of an object between passes is a track.
package engine
