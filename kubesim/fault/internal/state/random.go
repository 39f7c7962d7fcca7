package state

import (
	"slices"
	"strings"
)

// Shape is what names have in common that an operator makes from fixed and random words: "web-*****" and
// "web-*****-*****". Each star is a lower-case letter or a digit.
type Shape struct {
	// Kind is the resource and group: "machines.cluster.x-k8s.io".
	Kind string
	// Name is a name with stars.
	Name string
}

// shortestRandom is the length from which a word of a name may be random.
const shortestRandom = 4

// ShapeOf returns the shape that two names of one kind have in common; false if they have none.
func ShapeOf(kind, a, b string) (Shape, bool) {
	x, y := strings.Split(a, "-"), strings.Split(b, "-")
	if a == b || len(x) != len(y) {
		return Shape{}, false
	}
	fixed := false
	for i := range x {
		switch {
		case x[i] == y[i]:
			fixed = true
		case len(x[i]) != len(y[i]) || len(x[i]) < shortestRandom || !isRandom(x[i]) || !isRandom(y[i]):
			return Shape{}, false
		default:
			x[i] = strings.Repeat("*", len(x[i]))
		}
	}
	return Shape{Kind: kind, Name: strings.Join(x, "-")}, fixed
}

// isRandom reports whether a word has only letters that random words have.
func isRandom(word string) bool {
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Fits reports whether a name of any kind has the shape.
func (s Shape) Fits(name string) bool {
	if len(name) != len(s.Name) {
		return false
	}
	for i := range len(name) {
		if s.Name[i] != name[i] && (s.Name[i] != '*' || !isRandom(name[i:i+1])) {
			return false
		}
	}
	return true
}

// general is the shape with one star for each random word, as names stand in states.
func (s Shape) general() string {
	words := strings.Split(s.Name, "-")
	for i, w := range words {
		if strings.HasPrefix(w, "*") {
			words[i] = "*"
		}
	}
	return strings.Join(words, "-")
}

// chosen returns what stands for the name of an object that was chosen at random, by the API server or by the
// operator; false if it was not.
func chosen(x Object, o Options) (string, bool) {
	name := x.Object.GetName()
	if prefix := x.Object.GetGenerateName(); prefix != "" && strings.HasPrefix(name, prefix) && name != prefix {
		return prefix + "*", true
	}
	if i := o.shape(strings.TrimSuffix(x.Resource+"."+x.Group, "."), name); i >= 0 {
		return o.Random[i].general(), true
	}
	return "", false
}

// IsRandom reports whether an operator chose a name at random.
func (o Options) IsRandom(kind, name string) bool { return o.shape(kind, name) >= 0 }

// shape returns the place of the shape that a name has; -1 if it has none.
func (o Options) shape(kind, name string) int {
	return slices.IndexFunc(o.Random, func(s Shape) bool { return s.Kind == kind && s.Fits(name) })
}
