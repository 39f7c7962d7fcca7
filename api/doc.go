// Package api defines the types that end up in users' custom resources: the common status,
// the condition types, the annotations that trimtab reads and writes, and parts of the specs
// of components.
//
// Embed [Status] in the status of a kind and implement [Object]. If the kind stands for an
// external resource, use [ExternalStatus] and [ExternalObject] instead; if it stands for a set
// of Kubernetes objects, use [ComponentStatus] and [ComponentObject]. Package loop fills in the
// rest.
//
// The package imports only apimachinery, which keeps modules of API types small. Conditions
// are computed in package conditions.
package api
