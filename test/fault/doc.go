// Package fault plays trimtab's own engines and samples through every crash and every single
// fault, in memory. Only tests are here; the stories are in package scenarios.
package fault
