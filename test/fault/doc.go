// Package fault plays trimtab's own engines and samples through every crash and every single
// fault, in memory. Only tests are here; the stories are in package scenarios. What
// they read outside the module, they read by the link testdata/root: go test keeps a result only as long as files of the module are the
// same.
package fault
