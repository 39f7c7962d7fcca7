package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/graph"
)

// The stages of a wave when objects are applied. Each begins when the one before is ready.
const (
	stageRegular = iota
	// stageLate is that of APIServices: what answers for them is in the stage before.
	stageLate
	// stageInstances is that of instances of types that the component adds to the API.
	stageInstances
	applyStages
)

// deleteStages are those of a wave when objects are deleted: instances, then everything else.
const deleteStages = 2

// arrange finds the stages of the members.
func (p *pass) arrange() {
	items := make([]api.InventoryItem, 0, len(p.members))
	for _, m := range p.members {
		items = append(items, m.item)
	}
	instances := desired.Instances(items, p.ManagedTypes)
	for key, m := range p.members {
		m.stage = stageRegular
		switch {
		case m.wanted == nil && instances[string(key)], m.wanted != nil && m.wanted.Managed:
			m.stage = stageInstances
		case m.wanted != nil && isAPIService(m.item):
			m.stage = stageLate
		}
	}
	p.advance()
}

// advance moves what the first stage needs into the first stage.
func (p *pass) advance() {
	var first []*member
	for _, m := range p.members {
		if m.wanted != nil && m.stage == stageRegular {
			first = append(first, m)
		}
	}
	for len(first) > 0 {
		m := first[len(first)-1]
		first = first[:len(first)-1]
		for _, need := range m.item.DependsOn {
			if n := p.members[graph.Key(need)]; n != nil && n.wanted != nil && n.stage == stageLate {
				n.stage = stageRegular
				first = append(first, n)
			}
		}
	}
}

func (m *member) applyWave() int { return applyStages*int(m.item.ApplyOrder) + m.stage }

func (m *member) deleteWave() int {
	wave := deleteStages * int(m.item.DeleteOrder)
	if m.stage == stageInstances {
		return wave
	}
	return wave + 1
}

// purgeWave is the last stage of a wave.
func purgeWave(order int16) int { return applyStages*int(order) + applyStages - 1 }

func kindOf(item api.InventoryItem) schema.GroupKind {
	return schema.GroupKind{Group: item.Group, Kind: item.Kind}
}

func isAPIService(item api.InventoryItem) bool {
	return kindOf(item) == schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
}

func isCRD(item api.InventoryItem) bool {
	return kindOf(item) == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// leavesAlike reports whether two items say the same about how the object goes: then the one that is
// recorded will do.
func leavesAlike(a, b api.InventoryItem) bool {
	return a.DeletePolicy == b.DeletePolicy && a.DeleteOrder == b.DeleteOrder &&
		slices.Equal(a.DependsOn, b.DependsOn) && slices.Equal(a.ManagedTypes, b.ManagedTypes)
}
