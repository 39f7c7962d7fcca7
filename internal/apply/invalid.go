package apply

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InvalidError is the answer of an API server that will not accept a manifest as it is, however often it is sent.
type InvalidError struct {
	// Words are the API server's, without Go syntax, and Remedy is what to do.
	Words, Remedy string
	// Err is the answer.
	Err error
}

// Error says what is wrong and what to do.
func (e *InvalidError) Error() string {
	if e.Remedy == "" {
		return e.Words
	}
	return e.Words + "; " + e.Remedy
}

// Unwrap returns the answer.
func (e *InvalidError) Unwrap() error { return e.Err }

// untyped begins the answer to a server-side apply whose manifest does not fit the schema of its kind. The API server
// gives it the code 500 and no reason, so only its text tells.
const untyped = "failed to create typed patch object"

// passing are parts of answers that depend on other objects: on what a webhook or an admission policy looks at, and on
// who has a port or an address of Services.
var passing = []string{`admission webhook "`, "AdmissionPolicy '", "already allocated", "failed to allocate"} //nolint:gochecknoglobals // a constant list

// Invalid returns the [InvalidError] that an answer to a write is, or nil. operator is the prefix of annotations.
// An answer that depends on other objects is none.
func Invalid(err error, operator string) *InvalidError {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || isUIDRefused(err) {
		return nil
	}
	s := status.Status()
	if slices.ContainsFunc(passing, func(text string) bool { return strings.Contains(s.Message, text) }) {
		return nil
	}
	undecodable := s.Code == http.StatusBadRequest && strings.Contains(s.Message, "cannot be handled as a")
	if s.Reason != metav1.StatusReasonInvalid && !undecodable && !strings.HasPrefix(s.Message, untyped) {
		return nil
	}
	list := wordsOf(s)
	words := strings.Join(list, "; ")
	invalid := &InvalidError{Words: words, Remedy: remedies(list, s, operator), Err: err}
	if _, plain := err.(*apierrors.StatusError); !plain { //nolint:errorlint // what wraps the answer says what to do
		invalid.Words, invalid.Remedy = strings.Replace(err.Error(), status.Error(), words, 1), ""
	}
	return invalid
}

// wordsOf returns what an API server calls invalid, without Go syntax: one text for each thing that is wrong.
func wordsOf(s metav1.Status) []string {
	var list []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Message != "" {
				list = append(list, strings.TrimPrefix(c.Field+": "+withoutValue(c.Message), ": "))
			}
		}
	}
	if rest, found := strings.CutPrefix(s.Message, untyped); found {
		_, text, _ := strings.Cut(rest, "): ")
		for line := range strings.SplitSeq(strings.TrimPrefix(text, "errors:\n"), "\n") { // several have a line each
			list = append(list, strings.TrimPrefix(withoutGo(strings.TrimSpace(line)), "."))
		}
	}
	if len(list) == 0 {
		list = append(list, withoutGo(withoutValue(s.Message)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

var (
	goValue = regexp.MustCompile(`got &(?:value\.\w+)?\{(?:Value:)?(.*)\}$`)
	goField = regexp.MustCompile(`json: cannot unmarshal (\w+) into Go struct field \w+\.([\w.]+) of type (\S+)`)
)

// withoutGo says in the words of manifests what a text says in those of Go.
func withoutGo(text string) string {
	if m := goField.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: expected %s, got %s", m[2], typeName(m[3]), m[1])
	}
	m := goValue.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	value := text[m[2]:m[3]]
	switch {
	case strings.HasPrefix(value, "map["):
		value = "map"
	case strings.HasPrefix(value, "["):
		value = "list"
	}
	return text[:m[0]] + "got " + value
}

// typeName is what a user calls a type of Go.
func typeName(t string) string {
	switch {
	case t == "string":
		return t
	case t == "bool":
		return "boolean"
	case strings.Contains(t, "int"), strings.Contains(t, "float"):
		return "number"
	case strings.HasPrefix(t, "[]"):
		return "list"
	}
	return "map"
}

// withoutValue drops the value that a message quotes if it is an object or a list: it may be long, and what is wrong
// with it comes after it. It also drops the differences that are shown of a Pod.
func withoutValue(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	const begin = "Invalid value: "
	head, rest, found := strings.Cut(message, begin)
	open := strings.IndexAny(rest, "{[")
	if !found || open < 0 || strings.ContainsAny(rest[:open], ` ":`) {
		return message
	}
	depth := 0
	for i, c := range rest[open:] {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return head + strings.TrimPrefix(rest[open+i+1:], ": ")
		}
	}
	return message
}

// remedies are what to do about all that an API server calls invalid.
func remedies(words []string, s metav1.Status, operator string) string {
	var list []string
	for _, text := range words {
		if r := remedy(text, s, operator); !slices.Contains(list, r) {
			list = append(list, r)
		}
	}
	return strings.Join(list, "; ")
}

// remedy is what to do about one thing that an API server calls invalid.
func remedy(words string, s metav1.Status, operator string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(words, p) })
	}
	switch {
	case has("duplicate entries for key"):
		return fmt.Sprintf("remove one of the two, or set %s/update-policy: replace, with which the last one counts", operator)
	case has("expected string, got map", "expected string, got list", "expected string, got object", "expected string, got array"):
		return "write the value as text, for example after a |"
	case has("expected string, got"):
		return "quote the value"
	case has("field not declared in schema"):
		return "correct the name of the field or remove it"
	case has("metadata.name:"):
		return "rename the object"
	case has("immutable", "updates to", "may not change", "may not be changed"):
		return unchangeable(s, operator)
	}
	return "change the manifest"
}

// unchangeable is what to do about a field that cannot be changed.
func unchangeable(s metav1.Status, operator string) string {
	if s.Details != nil && HoldsData(schema.GroupKind{Group: s.Details.Group, Kind: s.Details.Kind}) {
		return fmt.Sprintf("undo the change, or set %s/immutable-policy: recreate and %s/accept-data-loss: \"true\" "+
			"to have the object deleted with what it contains and created again", operator, operator)
	}
	return fmt.Sprintf("undo the change, or set %s/immutable-policy: recreate to have the object deleted and created again", operator)
}

// HoldsData reports whether something is lost with objects of a kind that creating them again does not
// bring back.
func HoldsData(k schema.GroupKind) bool {
	switch k {
	case schema.GroupKind{Kind: "Namespace"}, schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Kind: "PersistentVolume"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return true
	}
	return false
}
