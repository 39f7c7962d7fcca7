package external

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Connectable is a [Driver] of resources to which others connect: their connection details are written to a Secret, or
// a ConfigMap, that the object names. They come from [Observation.Details] and [CreateResponse.Details].
//
// The Secret belongs to the object and goes with it. One that exists and does not belong to the object is left alone,
// and condition Failed says so. Keys that others add stay. The Secret is written only if a value has changed, before
// anything else is done about the resource, and is written again if it is deleted. An object is not Ready before its
// connection details were written.
type Connectable[T client.Object] interface {
	// Connection returns where the connection details of obj's resource go. It is pure. It is also called with
	// an empty object, to find out whether Secrets or ConfigMaps have to be watched.
	Connection(obj T) Connection
}

// Connection is where connection details go.
type Connection struct {
	// To is a *[api.SecretReference] or *[api.ConfigMapReference], for example a field of the spec. It is required. If
	// its Name is empty, the object wants no connection details, and they are dropped.
	To api.Reference

	// Namespace is that of the Secret if the object is cluster-scoped. Otherwise it is that of the object.
	Namespace string

	// Passwords are keys of the Secret for which the operator chooses values, unless there are some. They are durable
	// before Create is called, and are passed to Create and Update. If somebody changes or removes one,
	// the resource gets the new one by an Update with a change at "connection." and the key. The driver must be an
	// [Updater]. A Secret that is restored from a backup is not noticed if the operator has restarted since.
	Passwords []string

	// Once are keys of [CreateResponse.Details] that no observation shows. If one is missing although the resource
	// exists, because the operator was killed before it could write it or somebody deleted it, the object is not Ready
	// (reason ConnectionLost) and says how to go on.
	Once []string
}
