// Package record is what proves whose an external resource is: the [Record] on the object, which
// is durable before the resource is created, and the ownership mark on the resource itself.
//
// A record is evidence, not authority: what somebody writes into it gives nothing that the
// adoption policy would not give.
package record
