package apiserver

// Use is a right that a request needed. Requests that need the same are one use.
type Use struct {
	Verb, Group, Resource, Subresource, Namespace, Name string
	// Path is set instead of all but the verb if the request is for no resource: "/version".
	Path string
	// Allowed tells whether a role granted it.
	Allowed bool
}

// Audit collects the rights that clients needed. It may be shared by any number of clients
// and worlds. The zero value is ready.
type Audit struct{}

// Uses returns what was collected, sorted.
func (a *Audit) Uses() []Use { return nil }
