// Package trace records what a pass of the loop read, decided, called and wrote, and when the
// next pass is due. Logs, transcripts in tests and the live view of the demo are all made from
// these events.
//
// An [Event] is one of a closed set of types. The loop opens a [Pass] each time it reconciles an
// object; code that it calls finds the pass with [From] and emits events. A [Sink] receives them
// as [Record] values: [Ring] keeps the most recent ones in memory, [JSON] and [Text] write them,
// [Buffer] prevents a slow sink from delaying the loop, and [Multi] feeds several sinks.
// [Transcript] formats records for comparison in tests, without anything that differs from run
// to run.
//
// Events contain no secrets. [NewDrift] replaces values that are marked as sensitive with
// [Redacted], [Write] has no field for values, and [Pass.Emit] removes credentials in their usual
// forms from every text.
//
// [Decode] reads traces of other processes. To follow a running operator, see package operator.
// Start with the package example.
package trace
