package inventory

import "errors"

// ErrLost is why a ConfigMap cannot be used.
var ErrLost = errors.New("it is missing or was changed; restore it from a backup, or remove status.inventoryShards of the component: " +
	"then Kubernetes objects are found again by their labels, and " +
	"external resources only if they are still rendered; functions are called again")
