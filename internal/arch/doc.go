// Package arch keeps the shape of the repository: which package may import which, what
// stays pure, how large a file grows, what a module may require. It has tests alone.
//
// Each rule is a function from a parsed tree to its findings. TestRepository applies all
// rules to this repository; TestTeeth applies each to a small tree in testdata/teeth that
// breaks it, so that a rule that no longer bites is noticed.
package arch
