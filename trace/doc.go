// Package trace says what a pass of the loop read, decided, wrote and called, and when it
// comes again. Logs, transcripts in tests, the demo's live view and history are views of
// these events.
//
// An [Event] is one of a closed set. The loop opens a [Pass] per visit of an object; code
// that runs within finds it with [From] and emits into it. A [Sink] receives finished
// [Record] values: [Ring] keeps the last ones in memory, [JSON] and [Text] write them out.
//
// Values of Secrets and of fields marked sensitive never enter an event: what cannot be
// shown is replaced by [Redacted] before it gets here.
package trace
