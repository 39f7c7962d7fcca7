// Package crash kills a real operator before and after each of its writes and looks at what
// is left. The operator is the sample's own binary in a process of its own; between it and
// the real API server and the real NATS server stand proxies that count its writes and send
// SIGKILL at the n-th. Only tests are here.
package crash
