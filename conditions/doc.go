// Package conditions contains what a pass reports in the status of its object: single conditions,
// collected in a [Set], and the complete [Report], which is merged with the conditions that others
// wrote.
//
// [Reasons] registers what users should know about the reasons of conditions: how bad they are, and what to do. By it
// conditions are summed up, and those of other objects mirrored. Reconcilers of controller-runtime can use it, too.
//
// Only package loop writes status. Start with the example of Report.Merge.
package conditions
