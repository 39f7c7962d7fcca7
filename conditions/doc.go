// Package conditions holds what a pass says of its object in status: single conditions, collected in a
// [Set], and the finished [Report], which is merged with the conditions that others wrote and compared
// with what the server has, so that nothing unchanged is written.
//
// Writing is not here: only package loop writes status. Start with the example of Report.Merge.
package conditions
