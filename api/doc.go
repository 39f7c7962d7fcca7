// Package api defines the types that end up in users' custom resources: the common status,
// the condition types, and the annotations that trimtab reads and writes.
//
// Embed [Status] in the status of a kind, or [ExternalStatus] if the kind stands for an
// external resource, and implement [Object] or [ExternalObject]. Package loop fills in the
// rest.
//
// The package imports only apimachinery, which keeps modules of API types small. Conditions
// are computed in package conditions.
package api
