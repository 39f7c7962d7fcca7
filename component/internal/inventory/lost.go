package inventory

import "errors"

// ErrLost is why a ConfigMap cannot be used.
var ErrLost = errors.New("it is missing or was changed; restore it from a backup, or remove status.inventoryShards of the component: " +
	"then the dependents are found again by their labels")
