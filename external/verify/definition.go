package verify

import (
	"cmp"
	"slices"

	"github.com/trimtab-dev/trimtab/external"
)

// DefinitionManager says what the objects of a kind need.
type DefinitionManager[T external.Object] interface {
	// Dependencies returns the objects that must be ready before anything is done for instance. It is pure. It is also
	// called with an empty object, to find out which kinds to watch.
	Dependencies(instance T) DependencyDefinitions
}

// DependencyDefinitions are the objects that one object needs. The zero value has none.
type DependencyDefinitions struct {
	// Owner is a dependency that also becomes an owner of the object; see [external.Dependency]. An empty Role means "owner".
	// Nil means that there is none.
	Owner *external.Dependency
	// Dependencies are the others.
	Dependencies []external.Dependency
}

// list returns all dependencies. An object of this package that has failed is not ready, even if it works.
func (d DependencyDefinitions) list() []external.Dependency {
	all := slices.Clone(d.Dependencies)
	if d.Owner != nil {
		owner := *d.Owner
		owner.Owner, owner.Role = true, cmp.Or(owner.Role, "owner")
		all = append(all, owner)
	}
	for i := range all {
		all[i].Current = true
	}
	return all
}

// NoDependencies is the [DefinitionManager] of a kind whose objects need no others.
type NoDependencies[T external.Object] struct{}

// Dependencies implements [DefinitionManager].
func (NoDependencies[T]) Dependencies(T) DependencyDefinitions { return DependencyDefinitions{} }
