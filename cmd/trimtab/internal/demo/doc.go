// Package demo shows a real operator at work: samples/nats, in a process of its own, manages
// streams in a real NATS server for objects in a real API server. The demo creates objects,
// makes drift, kills the operator with SIGKILL and deletes everything.
//
// [Run] runs the demo. A step succeeds only when its result has been read back from Kubernetes
// and NATS. `trimtab demo` builds the program trimtab-demo and the operator before it starts
// them, which keeps the trimtab binary itself small.
package demo
