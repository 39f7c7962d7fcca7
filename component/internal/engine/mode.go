package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/graph"
)

// idle is when a component is looked at again that waits for its mode. Events come earlier.
const idle = time.Hour

// modeOf is the stricter of a member's mode and that of the component.
func (p *pass) modeOf(m *member) api.Mode {
	for _, mode := range []api.Mode{api.ModeSuspended, api.ModeDetectOnly} {
		if p.c.Mode == mode || m.item.Mode == mode {
			return mode
		}
	}
	return api.ModeFull
}

// restrain applies a member's mode to what would be done to it.
func (p *pass) restrain(m *member, f *graph.Facts, live projection.Object, found bool) {
	mode := p.modeOf(m)
	change := f.Change != graph.NoChange || f.Presence != graph.Present
	done := f.Completed && f.Change == graph.NoChange
	switch {
	case mode == api.ModeFull || f.Refused != "" || done || m.wanted != nil && !change || m.wanted == nil && p.deleting:
	case mode == api.ModeDetectOnly && (m.wanted == nil || !m.corrects()):
	case mode == api.ModeDetectOnly && found && !live.Leaving && live.Digest == m.item.Digest:
		m.drift, f.Change = "has drifted", graph.NoChange
	case mode == api.ModeDetectOnly && found && !live.Leaving:
		m.drift, f.Change = "was written in the operator's name", graph.NoChange
	case mode == api.ModeDetectOnly:
		m.missing(f)
	case found && m.wanted != nil && m.corrects():
		f.Change = graph.NoChange
	default:
		f.Refused, m.again = "is not changed in mode suspended", idle
	}
}

// reports joins what is said of members, each with its name.
func (p *pass) reports(of func(*member) string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(p.members)) {
		if m := p.members[key]; of(m) != "" {
			list = append(list, fmt.Sprintf("%s %s", ref(m.item), of(m)))
		}
	}
	text := strings.Join(list[:min(len(list), mostNamed)], "; ")
	if more := len(list) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
