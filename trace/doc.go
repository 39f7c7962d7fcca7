// Package trace says what a pass of the loop read, decided, wrote and called, and when it
// comes again. Logs, transcripts in tests, the demo's live view and history are views of
// these events.
//
// An [Event] is one of a closed set. The loop opens a [Pass] per visit of an object; code
// that runs within finds it with [From] and emits into it. A [Sink] receives [Record]
// values: [Ring] keeps the last ones in memory, [JSON] and [Text] write them out, [Buffer]
// keeps a slow one from holding up the loop, [Multi] feeds several. [Transcript] renders
// records without what differs from run to run, for comparison in tests.
//
// Values of Secrets and of fields marked sensitive never enter an event: [NewDrift] takes
// the mark and puts [Redacted] in their place, [Write] has no room for values, and what
// stands before the @ of a URL is cut out of every text on its way in.
//
// Reading logs of other processes is here ([Decode]); following a running operator is not,
// see package operator. Start with the example of Pass.
package trace
