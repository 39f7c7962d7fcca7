// Package lint finds mistakes in reconcilers that compile: analyzers for packages of trimtab's loop and of plain
// controller-runtime.
//
// [Analyzers] returns one analyzer for each rule. They run as trimtab lint, in go vet with -vettool, and in golangci-lint
// (package lint/golangci). A rule that cannot be sure says nothing: what is reported is meant to be mended. Where code is
// right nevertheless, a comment in the same line or the one above allows it and says why:
//
//	//trimtab:allow clientset reads the logs of Pods
//
// Objects in CRDs are checked by package crdcheck. Start with the example of Analyzers.
package lint
