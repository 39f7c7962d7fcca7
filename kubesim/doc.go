// Package kubesim is a Kubernetes API server for tests that starts in milliseconds: the real
// one's own code, on memory, in the test's process.
//
// [New] makes a cluster and [Cluster.Config] tells how to reach it; from there on clients,
// informers and whole managers are what they are with any other cluster. Defaulting, pruning,
// validation, CEL rules, status and scale subresources, server-side apply, finalizers, watches
// and discovery are not modelled but executed, for the built-in kinds and for those of CRDs.
// Nothing is downloaded, no port is opened, and nothing is left behind. The first cluster of a
// process answers its first request after about 42 ms on two cores, later ones after 6 ms;
// BenchmarkFirstCluster and BenchmarkFirstRequest measure it.
//
// Inside [testing/synctest.Test] the cluster lives in the bubble's virtual time: events expire
// after an hour and leases run out without anybody waiting. A cluster belongs to the bubble in
// which it was made. Events that are recorded about one object while the time stands still get different names,
// as they would if it went on.
//
// The garbage collector and the deletion of namespaces act by themselves after each write.
// There are no other controllers, no scheduler and no kubelet: Deployments make no Pods, and a Pod stays
// Pending until a test says otherwise. Webhooks are called if [Cluster.ServeWebhooks] says who answers;
// admission policies are stored, not evaluated. Logs, exec and proxies need a kubelet, so they are missing.
// A namespace gets no service account named default, because a controller makes it in a real
// cluster: Pods do without, and a test that wants one creates it.
//
// OpenAPI documents are made when somebody asks, which takes a fraction of a second.
//
// The server is that of Kubernetes [KubernetesVersion].
//
// Begin with the example of [New]. To find out what an operator does when it is killed or its
// calls fail, see package [github.com/trimtab-dev/trimtab/kubesim/fault].
package kubesim
