// Package kubesim is a Kubernetes API server for tests that starts in milliseconds. It runs the code of the real
// API server in the test's process, with storage in memory.
//
// [New] starts a cluster, and [Cluster.Config] returns how to reach it. Clients, informers and managers work as with
// any other cluster. Built-in kinds and those of CRDs have defaulting, pruning, validation, CEL rules, status and scale
// subresources, server-side apply, finalizers, watches and discovery.
// Nothing is downloaded, no port is opened, and nothing is left behind. The first cluster of a
// process answers its first request after about 42 ms on two cores, later ones after 6 ms.
// BenchmarkFirstCluster and BenchmarkFirstRequest measure it.
//
// Inside [testing/synctest.Test], the cluster has the bubble's virtual time: events expire
// after an hour and leases run out without waiting. A cluster belongs to the bubble in
// which it was made. Events about one object get different names, also while the time stands still.
//
// The garbage collector and the deletion of namespaces act after each write.
// There are no other controllers, no scheduler and no kubelet. Deployments make no Pods, and a Pod stays
// Pending until a test writes its status. Webhooks are called if [Cluster.ServeWebhooks] says who answers.
// Admission policies are stored and ignored. Logs, exec and proxies are missing, because they need a kubelet.
// A namespace has no service account named default, because a controller makes it in a real
// cluster. Pods work without it; a test that wants one creates it.
//
// OpenAPI documents are made when somebody asks, which takes a fraction of a second.
//
// The server is that of Kubernetes [KubernetesVersion].
//
// Begin with the example of [New]. To find out what an operator does when it is killed or its
// calls fail, see package [github.com/trimtab-dev/trimtab/kubesim/fault].
package kubesim
