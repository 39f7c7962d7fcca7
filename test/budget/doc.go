// Package budget asserts what an operator costs: the requests of the NATS sample, a process
// of its own under its own account, are counted by the API server's audit log and by the
// NATS server. Only tests are here.
package budget
