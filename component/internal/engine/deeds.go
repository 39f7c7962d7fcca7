package engine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// What was done to a dependent. The names are those of component-operator-runtime's events.
const (
	Created     = "Created"
	Updated     = "Updated"
	UpdateError = "UpdateError"
	Deleted     = "Deleted"
	DeleteError = "DeleteError"
)

// Deed is a request that changed a dependent, or that was refused.
type Deed struct {
	apply.Ref
	// UID is the one that is known of the object. It may be empty.
	UID types.UID
	// What is one of the constants.
	What string
	// Err is why it failed.
	Err error
}

// tell passes on what an action did to a member.
func (p *pass) tell(m *member, action graph.Action, err error) {
	what := m.did
	if err != nil {
		switch action {
		case graph.Create, graph.Update, graph.Recreate:
			what = UpdateError
		case graph.Delete, graph.Purge, graph.Release:
			what = DeleteError
		case graph.None, graph.Record, graph.Complete, graph.Forget:
		}
	}
	if p.c.Did != nil && what != "" && !m.node {
		p.c.Did(Deed{Ref: ref(m.item), UID: types.UID(m.item.UID), What: what, Err: err})
	}
}
