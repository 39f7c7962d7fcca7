// Package kubesim is an API server for tests that starts in milliseconds: the real one's own
// code, on memory, in the process.
package kubesim
