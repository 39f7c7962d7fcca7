package externaltest

import (
	"time"

	"github.com/trimtab-dev/trimtab/external"
)

// Fixture is what a driver is checked with. Client and New are required.
type Fixture[T external.Object, C any] struct {
	// Client is a client of an API that the test may change. Resources are created in it and deleted again.
	Client C
	// New returns a valid object, whose resource can be created. It must not differ for the same name, and the resources of
	// different names must not be the same. The UID, and the name and the namespace unless they are set, are filled in.
	New func(name string) T
	// Changes are changes of the spec that the driver supports, by a name for the test.
	Changes map[string]func(T)
	// Options are those with which the driver runs. Only those that say something about the API matter: Unmarked, MarkLater,
	// UniqueNames, AssignedIDs, Tokens and CreateGrace.
	Options external.Options[T, C]
	// Patience is how long the API may take for one change. Zero means 30 s.
	Patience time.Duration
}

func (f Fixture[T, C]) patience() time.Duration {
	if f.Patience <= 0 {
		return 30 * time.Second
	}
	return f.Patience
}

// leastPoll and mostPoll bound the time between two observations of a resource that is awaited.
const (
	leastPoll = 10 * time.Millisecond
	mostPoll  = time.Second
)
