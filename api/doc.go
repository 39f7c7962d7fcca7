// Package api holds the types that end up in users' custom resources: the common
// status, condition types, and the annotations that trimtab reads and writes.
//
// Embed [Status] (or [ExternalStatus] for something outside the cluster) in a kind's
// status and return it from a method named TrimtabStatus; the rest is done by loop.
//
// The package imports apimachinery alone, so that an API module stays light. How
// conditions are computed is not here; see package status.
package api
