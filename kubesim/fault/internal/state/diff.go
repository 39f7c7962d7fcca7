package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Diff shows what differs, as lines of YAML: "-" what only a has, "+" what only b has. It is
// empty if nothing does.
func Diff(a, b history.State) string {
	x, y := sheets(a, b), sheets(b, a)
	keys := slices.Sorted(maps.Keys(x))
	for key := range y {
		if _, both := x[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out strings.Builder
	for _, key := range keys {
		before, inA := x[key]
		after, inB := y[key]
		switch {
		case !inB:
			out.WriteString("- " + key + summary(before) + "\n")
		case !inA:
			out.WriteString("+ " + key + summary(after) + "\n")
		case before != after:
			out.WriteString("  " + key + "\n")
			lines(&out, before, after)
		}
	}
	return out.String()
}

// sheets returns all that a state holds, as YAML by key, and what it was given if another state has changed that.
func sheets(w, other history.State) map[string]string {
	all := maps.Clone(w.Objects)
	if all == nil {
		all = map[string]string{}
	}
	for key := range other.Objects {
		if _, changed := all[key]; !changed && w.Given != nil {
			if sheet := w.Given(key); sheet != "" {
				all[key] = sheet
			}
		}
	}
	maps.DeleteFunc(all, func(_, sheet string) bool { return sheet == history.Gone })
	for _, t := range w.Resources {
		key := externalKey(t)
		for n := 2; all[key] != ""; n++ {
			key = fmt.Sprintf("%s (%d)", externalKey(t), n)
		}
		all[key] = externalYAML(t)
	}
	return all
}

// summary is all of an external resource in one line; objects are too long for that.
func summary(sheet string) string {
	fields := strings.Split(strings.TrimSpace(sheet), "\n")
	if len(fields) != 3 || !strings.HasPrefix(sheet, "owner: ") {
		return ""
	}
	return " (" + strings.Join(fields, ", ") + ")"
}

// edit is one line of a difference: ' ', '-' or '+'.
type edit struct {
	op   byte
	line string
}

// lines writes the lines that differ, each below the lines that it belongs to.
func lines(out *strings.Builder, a, b string) {
	var above []edit // the lines that enclose the present one
	shown := 0       // how many of them are written
	for _, e := range script(strings.Split(strings.TrimSuffix(a, "\n"), "\n"), strings.Split(strings.TrimSuffix(b, "\n"), "\n")) {
		depth := indentOf(e.line)
		for len(above) > 0 && indentOf(above[len(above)-1].line) >= depth {
			above = above[:len(above)-1]
		}
		shown = min(shown, len(above))
		if e.op == ' ' {
			above = append(above, e)
			continue
		}
		for ; shown < len(above); shown++ {
			out.WriteString("      " + above[shown].line + "\n")
		}
		fmt.Fprintf(out, "%c     %s\n", e.op, e.line)
	}
}

// indentOf says how deep a line is; elements of a list are deeper than its key, beside which
// they stand.
func indentOf(line string) int {
	rest := strings.TrimLeft(line, " ")
	depth := 2 * (len(line) - len(rest))
	if strings.HasPrefix(rest, "-") {
		depth++
	}
	return depth
}

// script returns how to come from a to b with the fewest edits.
func script(a, b []string) []edit {
	n := make([][]int, len(a)+1) // the longest common rest of a[i:] and b[j:]
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i, x := range slices.Backward(a) {
		for j, y := range slices.Backward(b) {
			if x == y {
				n[i][j] = n[i+1][j+1] + 1
			} else {
				n[i][j] = max(n[i+1][j], n[i][j+1])
			}
		}
	}
	var out []edit
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && n[i+1][j] >= n[i][j+1]:
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return out
}

// Mask lists the fields in which two undisturbed runs differ: what an operator takes from
// random numbers. Objects that only one of them has are no fields.
func Mask(a, b history.State) []history.Field {
	var found []history.Field
	x, y := sheets(a, b), sheets(b, a)
	for _, key := range slices.Sorted(maps.Keys(x)) {
		after, both := y[key]
		if !both || after == x[key] {
			continue
		}
		var before, now any
		if yaml.Unmarshal([]byte(x[key]), &before) != nil || yaml.Unmarshal([]byte(after), &now) != nil {
			continue // no YAML of ours
		}
		leaves("", before, now, byIndex, func(path string, _, _ any) {
			found = append(found, history.Field{Object: key, Path: path})
		})
	}
	return found
}
