// Package testenv provides tests with a real Kubernetes API server.
//
// [Start] returns a client configuration. It uses the cluster whose kubeconfig
// TRIMTAB_TEST_KUBECONFIG names (which TRIMTAB_TEST_THROWAWAY says is removed after the tests), or else the envtest binaries in KUBEBUILDER_ASSETS, or else
// trimtab's own control plane, which a release downloads on first use (TRIMTAB_RELEASES, see trimtab cluster
// --help) and other versions build. It is kept in the user's cache, so that
// nothing but Go has to be installed. All tests of a binary share one server, which ends with the
// binary.
//
// [Namespace] creates a namespace for a test, and [Install] installs CRDs. [Wait] and [Gone] wait for
// the state of an object without polling. [User] creates a service account with exactly the given
// permissions, [Requests] records the requests of a client, and [Kubeconfig] writes a file for
// programs. To test an operator, see package operatortest.
//
// Workload controllers and the garbage collector run in trimtab's control plane and in real
// clusters, but not in envtest.
package testenv
