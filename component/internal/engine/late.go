package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/graph"
)

// unready reports whether a wanted member is not as it should be.
func unready(n graph.Node) bool {
	done := n.Completed && (n.Change == graph.NoChange || n.Applied)
	return n.Wanted && !done && (n.Presence != graph.Present || n.Change != graph.NoChange || n.Health != graph.Current || n.Refused != "")
}

// time notes since when a member is not ready although its manifest was applied. That is written together with
// what made it so, which is in the inventory as well. Inventories have whole seconds: they are rounded up, so that
// nothing is late too early.
func (m *member) time(n graph.Node, now time.Time) {
	switch {
	case !unready(n) || !n.Applied:
		m.item.Since = nil
	case m.item.Since == nil || m.item.Since.Sub(now) > time.Second: // that is of a backup, or of somebody's making
		m.item.Since = new(metav1.NewTime(now.Add(time.Second - time.Nanosecond).Truncate(time.Second)))
	}
}

// late finds the members that take longer than they may, when the next of them will, and the first wave that is
// not ready.
func (p *pass) late(nodes []graph.Node, out *Result) {
	texts := map[graph.Key]string{}
	for _, n := range nodes {
		m := p.members[n.Key]
		if !unready(n) {
			continue
		}
		if order := m.item.ApplyOrder; out.Wave == nil || order < *out.Wave {
			out.Wave = &order
		}
		if m.wanted.Timeout == 0 || m.item.Since == nil {
			continue
		}
		if left := m.wanted.Timeout - p.now().Sub(m.item.Since.Time); left > 0 {
			out.again(left)
			continue
		}
		texts[n.Key] = fmt.Sprintf("%s is not ready after %s%s", ref(m.item), m.wanted.Timeout, p.because(m))
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, texts[key])
	}
	out.Late = strings.ReplaceAll(naming(list), "\n", "; ")
}

// because says why a member is not ready, if its health says so.
func (p *pass) because(m *member) string {
	if m.node {
		if why := p.stateOfNode(m); why != "" {
			return ": " + why
		}
		return ""
	}
	if live, found := p.Target.Cache.Get(liveKey(m.item)); found && live.Health.Why != "" {
		return ": it " + live.Health.Why
	}
	return ""
}

// again has the component looked at again after a time, or earlier.
func (r *Result) again(after time.Duration) {
	if r.Again == 0 || after < r.Again {
		r.Again = after
	}
}
