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
// Simulated are pods and what a cloud adds to a cluster. None of it happens
// without nodes, see [Options.Nodes]:
//
//   - A pod becomes Ready at once and runs until it is deleted. The pods of a Job
//     succeed at once.
//   - PersistentVolumeClaims are bound by Kubernetes' own controller. Volumes of
//     the default StorageClass "standard" are bound immediately, grow with their
//     claims and are deleted with them. Another class of the provisioner
//     "kubernetes.io/simulated" may choose WaitForFirstConsumer or Retain. A claim
//     of another provisioner stays Pending, and so does one with a data source.
//   - A Service of type LoadBalancer gets an address of 198.18.0.0/16, unless it
//     names a loadBalancerClass. Nobody answers at that address.
//   - An Ingress gets the address 198.19.0.1 if the controller of its IngressClass
//     is "trimtab.dev/simulated". An Ingress that names no class gets the default
//     class "simulated".
//   - HorizontalPodAutoscalers are served by Kubernetes' own controller. Its
//     metrics say that running pods use no CPU and no memory, so it scales to
//     minReplicas, after the usual five minutes if that means fewer pods. There
//     are no other metrics, and kubectl top has none.
//
// Missing are containers with their logs, exec and network; the contents of
// volumes; volume snapshots; certificate signing requests; more than one API
// server; Windows. As in any cluster, the garbage collector notices a new
// CustomResourceDefinition within 30 seconds, and deleting a namespace takes at
// least 5 seconds.
//
// An admission webhook or an aggregated API server that listens on loopback can
// be reached by its URL, or through a Service of type ExternalName with the
// externalName "localhost"; its certificate must then be for
// NAME.NAMESPACE.svc.
package devcluster
