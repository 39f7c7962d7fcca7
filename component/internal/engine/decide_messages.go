package engine

import (
	"fmt"
	"strings"

	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
)

// cannot says what went wrong with an attempt to do something to an object.
func cannot(action graph.Action, object apply.Ref, err error) error {
	switch action {
	case graph.Recreate:
		return fmt.Errorf("cannot delete %s to create it again: %w", object, err)
	case graph.Purge:
		return fmt.Errorf("cannot delete %s, which has done its work: %w", object, err)
	case graph.None, graph.Record, graph.Create, graph.Update, graph.Complete, graph.Delete, graph.Release, graph.Forget:
	}
	return fmt.Errorf("cannot %s %s: %w", action, object, err)
}

// skipped are the nodes of a plan that wait for one of those that failed, in the order of the plan.
func skipped(plan graph.Plan, failed func(graph.Key) bool) []graph.Key {
	var keys []graph.Key
	for _, step := range plan.Waiting {
		if failed(step.Key) || step.Action == graph.None {
			continue
		}
		for _, wait := range step.On {
			if failed(wait.Key) {
				keys = append(keys, step.Key)
				break
			}
		}
	}
	return keys
}

// naming names the first of some objects and says how many more there are.
func naming(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
