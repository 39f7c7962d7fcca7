// Package beside compares what an operator written with trimtab costs with a careful loop on
// controller-runtime alone: the same kind, the same external API, the same cluster, each in a process
// of its own. Only tests are here.
package beside
