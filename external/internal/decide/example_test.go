package decide_test

import (
	"fmt"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
)

// A decision needs no API, object or clock. Here a resource is gone although its object is not
// being deleted.
func ExampleNext() {
	facts := decide.Facts{
		Policy:   decide.Policy{Create: true, Update: true, Delete: true},
		Record:   decide.RecordFacts{KnownID: true, Incarnation: 1, Marker: record.MarkerPending},
		Creation: decide.CreationSeen,
		Seen:     decide.Seen{Observed: true, Phase: decide.PhaseMissing},
	}
	d := decide.Next(facts)
	fmt.Println(d.Row, d.Action, d.Incarnation, d.Reason)

	facts.Deleting = true
	d = decide.Next(facts)
	fmt.Println(d.Row, d.Action, d.Reason)
	// Output:
	// D-14 write marker 2 RecreatedAfterExternalDeletion
	// D-30 remove finalizer Absent
}
