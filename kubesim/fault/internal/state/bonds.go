package state

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

const (
	// shortestSecret is the length from which a random text is not equal to another one by chance.
	shortestSecret = 8
	// shortestCoded is the length from which a word in a text may be base64 of another one.
	shortestCoded = 12
	// deepestCoded is how often a text may be encoded: a password within a kubeconfig within a Secret.
	deepestCoded = 3
)

// Bonds lists what the masked fields have in common in all of several undisturbed runs at the same moment.
func Bonds(runs []history.State) (bonds []history.Bond) {
	if len(runs) == 0 {
		return nil
	}
	var firsts []history.Field // one of each set of fields that are equal
	for _, f := range slices.SortedFunc(maps.Keys(runs[0].Masked), secretsFirst) {
		if !differsAlways(f, runs) {
			continue
		}
		bonds = append(bonds, history.Bond{Of: f})
		same := func(with history.Field) bool {
			return holdsAlways(runs, func(s history.State) bool { return core(s.Masked[f]) == core(s.Masked[with]) })
		}
		if i := slices.IndexFunc(firsts, same); i >= 0 {
			bonds = append(bonds, history.Bond{Of: f, With: firsts[i]})
		} else {
			firsts = append(firsts, f)
		}
	}
	for _, f := range firsts {
		for _, with := range firsts {
			b := history.Bond{Of: f, With: with, Within: true}
			if f != with && holdsAlways(runs, func(s history.State) bool { return contains(s.Masked[with], s.Masked[f]) }) {
				bonds = append(bonds, b)
			}
		}
	}
	return bonds
}

// Kept lists those of several bonds that a state has.
func Kept(bonds []history.Bond, s history.State) (kept []history.Bond) {
	for _, b := range bonds {
		if s.Masked[b.Of] != "" && (b.With == history.Field{} || s.Masked[b.With] != "") && !isBroken(b, s) && !slices.Contains(kept, b) {
			kept = append(kept, b)
		}
	}
	return kept
}

// Matches reports whether a state is the one that was wanted, and random fields have the same in common.
func Matches(want, got history.State) bool {
	return Equal(want, got) && !slices.ContainsFunc(want.Bonds, func(b history.Bond) bool { return isBroken(b, got) })
}

// isBroken reports whether a state does not have a bond although it has the fields.
func isBroken(b history.Bond, s history.State) bool {
	if !exists(s, b.Of.Object) {
		return false
	}
	of, with := s.Masked[b.Of], s.Masked[b.With]
	switch {
	case b.With == history.Field{}:
		return of == ""
	case of == "" || with == "":
		return false // there is a bond for that
	case b.Within:
		return !contains(with, of)
	}
	return !contains(with, of) && !contains(of, with) // a bundle may keep an old authority beside the new one
}

// exists reports whether a state has an object or an external resource.
func exists(s history.State, key string) bool {
	_, is := s.Objects[key]
	return is || slices.ContainsFunc(s.Resources, func(t history.Resource) bool { return externalKey(t) == key })
}

// differsAlways reports whether a field has a text in each run that it has in no other one. Numbered names are not the
// same in each run, so nothing is known of their fields.
func differsAlways(f history.Field, runs []history.State) bool {
	seen := map[string]bool{}
	for _, s := range runs {
		if text := core(s.Masked[f]); len(text) >= shortestSecret {
			seen[text] = true
		}
	}
	return len(seen) == len(runs) && len(runs) > 1 && !isNumbered(f.Object)
}

// isNumbered reports whether the name of an object, or of an external resource, is one of several that
// were numbered by what they contain.
func isNumbered(key string) bool {
	if _, after, ok := strings.Cut(key, "*"); ok && after != "" && isDigit(after[0]) {
		return true
	}
	_, after, external := strings.Cut(key, " id(")
	before, _, _ := strings.Cut(after, " of ")
	return external && before != "" && strings.Contains(before, " ") && isDigit(before[len(before)-1])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// secretsFirst orders fields; those of Secrets are what others are compared with.
func secretsFirst(a, b history.Field) int {
	rank := func(f history.Field) int {
		if strings.HasPrefix(f.Object, "secrets ") {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Path, b.Path))
}

func holdsAlways(runs []history.State, is func(history.State) bool) bool {
	return !slices.ContainsFunc(runs, func(s history.State) bool { return !is(s) })
}

// contains reports whether a text is a part of another one, either of them encoded or not.
func contains(text, part string) bool { return containsCore(text, core(part), deepestCoded) }

func containsCore(text, part string, deep int) bool {
	if strings.Contains(text, part) {
		return true
	}
	if deep == 0 {
		return false
	}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isCode(r) }) {
		if inner, ok := uncoded(word); ok && containsCore(inner, part, deep-1) {
			return true
		}
	}
	return false
}

// core is a text without its encoding and the white space around it.
func core(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := uncoded(text); ok {
		return strings.TrimSpace(inner)
	}
	return text
}

// uncoded decodes base64 of a text.
func uncoded(word string) (string, bool) {
	if len(word) < shortestCoded || len(word)%4 != 0 {
		return "", false
	}
	b, err := base64.StdEncoding.DecodeString(word)
	return string(b), err == nil && utf8.Valid(b)
}

func isCode(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '+' || r == '/' || r == '='
}

// unbound are the bonds that a state does not have, although it should.
func unbound(want, got history.State) (found []Difference) {
	for _, b := range want.Bonds {
		if !isBroken(b, got) {
			continue
		}
		of, with := titled(b.Of, got), titled(b.With, got)
		d := Difference{Subject: subjectOf(b.Of) + " differs from " + subjectOf(b.With)}
		switch {
		case b.With == history.Field{}:
			d.Subject = subjectOf(b.Of)
			d.Text = of + " is missing, without the disturbance it has a random value"
		case b.Within:
			d.Text = fmt.Sprintf("%s does not contain %s, without the disturbance it does", with, of)
		default:
			d.Text = fmt.Sprintf("%s differs from %s, without the disturbance they are equal", of, with)
		}
		found = append(found, d)
	}
	return found
}

// titled names a field as differences do: "data.password of Secret default/a".
func titled(f history.Field, in history.State) string {
	_, name, _ := strings.Cut(f.Object, " ")
	for line := range strings.Lines(in.Objects[f.Object]) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			return fmt.Sprintf("%s of %s %s", f.Path, strings.TrimSpace(kind), name)
		}
	}
	return f.Path + " of " + f.Object
}

// subjectOf is the kind and the path of a field.
func subjectOf(f history.Field) string {
	resource, name, _ := strings.Cut(f.Object, " ")
	if resource == "external" {
		kind, _, _ := strings.Cut(name, " ")
		resource += " " + kind
	}
	return resource + " " + f.Path
}
