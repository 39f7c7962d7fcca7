// Package apply sends manifests to an API server: one request creates an object, one updates it, and no
// request reads it first.
package apply
