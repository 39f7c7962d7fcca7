// Package controlplane starts a Kubernetes control plane on this machine. It runs the devcluster
// binary, which is built once on demand and kept in the user's cache.
//
// [Binary] finds or builds the binary. [Start] runs it and returns a [Cluster]. A cluster ends with
// [Cluster.Stop], with the context of Start, or with the process that started it, however that dies.
// It leaves no process and no folder behind.
//
// The control plane itself is in the module devcluster. This package does not import it, so that
// programs that use this package build quickly.
package controlplane
