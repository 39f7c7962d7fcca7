// Package devcluster runs a Kubernetes control plane in this process: etcd,
// kube-apiserver, the most important controllers, the scheduler, and simulated
// kwok nodes on which pods become Running without being run. It is built from
// Go modules; nothing else is downloaded or installed.
//
// [Start] starts a [Cluster]. Most users should run the binary cmd/devcluster
// instead: linking this package costs minutes of compiling and 150 MB, and a
// process can run only one control plane. cmd/kubectl is the kubectl of the
// same release.
//
// Real are storage, API machinery, RBAC, service account tokens, admission with
// its default plugins, webhooks and policies, custom resources, server-side
// apply, aggregation, garbage collection, workload controllers and scheduling.
//
// Missing are containers with their logs, exec and network; volumes (claims
// stay Pending); certificate signing requests; autoscaling; more than one API
// server; Windows. As in any cluster, the garbage collector notices a new
// CustomResourceDefinition within 30 seconds, and deleting a namespace takes at
// least 5 seconds.
//
// An admission webhook or an aggregated API server that listens on loopback can
// be reached by its URL, or through a Service of type ExternalName with the
// externalName "localhost"; its certificate must then be for
// NAME.NAMESPACE.svc.
package devcluster
