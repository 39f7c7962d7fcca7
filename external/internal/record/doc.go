// Package record is the proof of who owns an external resource: the [Record] on the object, which
// is durable before the resource is created, and the ownership mark on the resource itself.
//
// A record is evidence, not authority: nothing that somebody writes into it grants more than the
// adoption policy would.
package record
