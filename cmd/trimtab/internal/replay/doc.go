// Package replay writes a test from a pass that an operator recorded: the test runs the pass again, by the operator's own
// controller in a cluster in memory (package looptest), and compares what it does with what it did.
//
// What a pass began with is not recorded. [Write] takes the object as it is now, and takes back of it what the record says that the
// pass has changed. The external API is the one that the operator's other tests use; if the resource existed, the test has the
// operator create it first, with the differences that the pass found. The comments in the test say what is not as it was.
package replay
