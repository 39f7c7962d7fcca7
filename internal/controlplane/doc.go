// Package controlplane starts a Kubernetes control plane on this machine: the devcluster
// binary, built on demand, once, into the user's cache.
//
// [Binary] finds or builds the binary, [Start] runs it and answers a [Cluster]. A cluster
// ends with [Cluster.Stop], with the context it was started under, and with the process
// that started it, however that dies; no process and no folder is left.
//
// The control plane itself is not here: it is the module devcluster, which this one does
// not import, so that what uses this package stays quick to build.
package controlplane
