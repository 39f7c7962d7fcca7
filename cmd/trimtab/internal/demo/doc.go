// Package demo shows a real operator at work: samples/nats in a process of its own, between
// a real API server and a real NATS server, through a life with drift and a SIGKILL.
//
// [Run] plays it. Each step ends only when what it claims was read back from Kubernetes and
// NATS; nothing counts because it was attempted. The program trimtab-demo is started by
// `trimtab demo`, which builds it and the operator first, so that the command line itself
// stays small.
package demo
