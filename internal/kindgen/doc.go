// Package kindgen generates what belongs to the kinds of a module: deep copies, CRDs, and the methods of components.
//
// Deep copies and CRDs come from sigs.k8s.io/controller-tools, which is used as a library: neither controller-gen nor a
// version of it has to be installed. [Module] generates, and [Stale] and [Write] compare with what is on disk and write.
package kindgen
