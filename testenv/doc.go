// Package testenv gives a test a real Kubernetes API server, and the few things that
// tests against one need.
//
// [Start] answers a client configuration. It looks, in this order, for a cluster whose
// kubeconfig TRIMTAB_TEST_KUBECONFIG names, for envtest's binaries in KUBEBUILDER_ASSETS,
// and else runs trimtab's own control plane, which is built on first use and kept in the
// user's cache: nothing needs to be installed but Go. All tests of a binary share one
// server; it ends with the binary.
//
// On it, [Namespace] gives each test a place of its own, [Install] brings CRDs, [Wait] and
// [Gone] wait for states without sleeping, [User] is somebody with exactly the permissions
// that the test names, [Requests] counts what a client asks of the server, and [Kubeconfig] is
// for programs that want a file. How to test an operator with these, see package operator.
//
// Workload controllers and the garbage collector run in trimtab's control plane and in
// real clusters, but not in envtest. Fakes of the API are not here.
package testenv
