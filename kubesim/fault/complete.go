package fault

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// decoded is an object that was read once already.
type decoded struct {
	resource schema.GroupResource
	object   *unstructured.Unstructured
}

// object decodes what is stored under a key at a revision. Nothing may modify it.
func (p *play) object(key string, data []byte, rev int64) decoded {
	if data == nil {
		return decoded{}
	}
	id := fmt.Sprintf("%s@%d\x00%s", key, rev, data)
	if d, ok := p.decoded[id]; ok {
		return d
	}
	gr, u, err := p.server.Object(key, data)
	if err != nil {
		return decoded{} // no kind of ours; discovery lists none either
	}
	u.SetResourceVersion(fmt.Sprint(rev))
	d := decoded{gr, u}
	p.decoded[id] = d
	return d
}

// complete puts into the record what the storage kept.
func (p *play) complete() {
	if p.db == nil {
		return
	}
	marks := p.marks
	for _, c := range p.db.History() {
		for len(marks) > 0 && marks[0].to < c.Rev {
			marks = marks[1:]
		}
		before, after := p.object(c.Key, c.Before, c.PrevRev), p.object(c.Key, c.After, c.Rev)
		shown := after
		if shown.object == nil {
			shown = before
		}
		if shown.object == nil {
			continue
		}
		h := history.Change{
			Rev: c.Rev, At: c.At, Group: shown.resource.Group, Resource: shown.resource.Resource,
			Namespace: shown.object.GetNamespace(), Name: shown.object.GetName(),
			Before: before.object, After: after.object, Call: history.Nobody, By: setupName,
		}
		if len(marks) > 0 && marks[0].from < c.Rev {
			h.By, h.Call, h.Step = marks[0].by, marks[0].call, marks[0].step
		}
		p.run.Changes = append(p.run.Changes, h)
	}
}

const setupName = "setup"

// findLeaks notes which goroutines of the operator are left a minute after it ended.
func (p *play) findLeaks() bool {
	left := bubbleGoroutines()
	if len(left) > 0 {
		time.Sleep(time.Minute) //nolint:forbidigo // of the simulated clock
		left = bubbleGoroutines()
	}
	if len(left) > 0 && len(p.run.Processes) > 0 {
		p.run.Processes[len(p.run.Processes)-1].Leaked = strings.Join(left, "\n\n")
	}
	return len(left) > 0
}

// bubbleGoroutines returns the stacks of the other goroutines of the bubble that it is called in.
func bubbleGoroutines() []string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := strings.Split(string(buf), "\n\n")
	bubble := bubbleOf(stacks[0])
	return slices.DeleteFunc(stacks, func(s string) bool {
		return bubbleOf(s) != bubble || s == stacks[0] || strings.Contains(s, "\ntesting/synctest.")
	})
}

// ownBubble returns the name of the bubble that it is called in.
func ownBubble() string {
	buf := make([]byte, 128)
	return bubbleOf(string(buf[:runtime.Stack(buf, false)]))
}

// bubbleOf returns the name of the bubble in a stack's first line: "synctest bubble 7".
func bubbleOf(stack string) string {
	first, _, _ := strings.Cut(stack, "\n")
	_, bubble, ok := strings.Cut(first, "synctest bubble ")
	if !ok {
		return ""
	}
	return strings.TrimRight(bubble, "]:")
}
