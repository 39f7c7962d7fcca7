// Package kindcache watches kinds of Kubernetes objects that come and go while a process runs. A kind has a cache of its
// own from its first user to its last one, because an informer cannot be taken out of a manager's cache without taking it
// from others, too. A kind that the API server does not serve is waited for. See [Pool.Hold].
package kindcache
