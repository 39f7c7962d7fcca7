package engine

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// notes has what this process knows about dependents, one value each. The zero value is ready to use.
type notes[V any] struct {
	mu      sync.Mutex
	objects map[fighter]V
}

func (n *notes[V]) get(id fighter) (V, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	value, found := n.objects[id]
	return value, found
}

func (n *notes[V]) set(id fighter, value V) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.objects == nil {
		n.objects = map[fighter]V{}
	}
	n.objects[id] = value
}

func (n *notes[V]) drop(id fighter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.objects, id)
}

// forget drops what is known of a component.
func (n *notes[V]) forget(component types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.objects, func(id fighter, _ V) bool { return id.component == component })
}
