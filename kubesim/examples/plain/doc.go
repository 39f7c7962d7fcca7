// Package plain is an ordinary Kubernetes operator for databases at a vendor, written on
// controller-runtime alone. It shows how package fault tests an operator that knows nothing
// of it: see plain_test.go.
package plain
