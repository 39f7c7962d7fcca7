package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// problems collects what is wrong with a set, one sentence each.
type problems struct{ texts []string }

func (p *problems) add(format string, args ...any) {
	p.texts = append(p.texts, fmt.Sprintf(format, args...))
}

// join returns all problems as one error. They are sorted: the text lands in a status, and must not
// change with the order in which a renderer returns objects.
func (p *problems) join() error {
	slices.Sort(p.texts)
	var errs []error
	for _, text := range slices.Compact(p.texts) {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// place names an object that may have no name.
func place(i int) string { return fmt.Sprintf("object %d", i+1) }

// alternatives lists values that would be right: `"a", "b" or "c"`.
func alternatives[S ~string](values []S) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", string(v))
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
