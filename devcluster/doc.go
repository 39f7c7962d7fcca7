// Package devcluster runs a Kubernetes control plane in this process: etcd,
// kube-apiserver, the controllers that a cluster needs to behave like one, the
// scheduler, and kwok nodes on which pods become Running without being run. It
// is made from Go modules alone; nothing is downloaded or installed.
//
// [Start] brings it up, [Cluster] is the handle, [Options] says what may
// differ. Most users want the binary instead, cmd/devcluster: linking this
// package costs minutes of compiling and 150 MB, and a process can hold one
// control plane only. cmd/kubectl is the kubectl of the same release.
//
// What is real: storage, API machinery, RBAC, ServiceAccount tokens, admission
// with its default plugins, webhooks and policies, custom resources, server-side
// apply, aggregation, garbage collection, workload controllers, scheduling.
//
// What is not here: containers, their logs, exec and network; volumes (claims
// stay Pending); certificate signing requests; autoscaling; more than one API
// server; Windows. The garbage collector learns of a new CustomResourceDefinition within
// 30 seconds and a namespace takes at least 5 seconds to go, as in any cluster.
//
// An admission webhook or an aggregated API server that listens on loopback is
// reached by its URL, or through a Service of type ExternalName whose
// externalName is "localhost"; its certificate is then for NAME.NAMESPACE.svc.
package devcluster
