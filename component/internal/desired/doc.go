// Package desired turns what a renderer returned into the checked set of objects that a component
// is to have.
//
// [Normalize] is the door: manifests in, [Object] values out, each with its manifest as it is
// applied, the item that the inventory records, and the settings that its annotations ask for.
// Every problem of every object is reported at once.
//
// The package is pure: no client, no clock. Objects stay untyped from rendering to request, so that
// fields newer than the API types linked here survive.
package desired
