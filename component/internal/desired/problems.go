package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// problems collects what is wrong with a set, one sentence each.
type problems struct{ errs []error }

func (p *problems) add(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

// join returns all problems as one error. They are sorted: the text lands in a status, and must not
// change with the order in which a renderer returns objects.
func (p *problems) join() error {
	byText := func(a, b error) int { return strings.Compare(a.Error(), b.Error()) }
	slices.SortFunc(p.errs, byText)
	return errors.Join(slices.CompactFunc(p.errs, func(a, b error) bool { return byText(a, b) == 0 })...)
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
