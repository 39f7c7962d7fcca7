// Package conditions contains what a pass reports in the status of its object: single conditions,
// collected in a [Set], and the complete [Report], which is merged with the conditions that others
// wrote.
//
// Only package loop writes status. Start with the example of Report.Merge.
package conditions
