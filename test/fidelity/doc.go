// Package fidelity asserts that the simulated API server answers like the real one: random
// sequences of requests are played on both, and every answer, every state and every watch
// event must agree. What once differed stays in testdata/cases and is played first. The real
// garbage collector makes its writes in no certain order, and seconds end anywhere between
// requests: the simulated server has to agree in one of its own orders, with seconds that end
// where the real one's did.
//
// Only tests are here; they are not built with the race detector, since a race build of
// Kubernetes takes many minutes.
package fidelity
