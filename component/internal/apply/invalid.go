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

// Invalid returns the [InvalidError] that an answer to a write is, or nil. operator is the prefix of annotations. The
// answer of a webhook or of an admission policy is none, because it may depend on other objects.
func Invalid(err error, operator string) *InvalidError {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || isUIDRefused(err) {
		return nil
	}
	s := status.Status()
	if strings.Contains(s.Message, `admission webhook "`) || strings.Contains(s.Message, "AdmissionPolicy '") {
		return nil
	}
	undecodable := s.Code == http.StatusBadRequest && strings.Contains(s.Message, "cannot be handled as a")
	if s.Reason != metav1.StatusReasonInvalid && !undecodable && !strings.HasPrefix(s.Message, untyped) {
		return nil
	}
	words := wordsOf(s)
	invalid := &InvalidError{Words: words, Remedy: remedy(words, operator), Err: err}
	if _, plain := err.(*apierrors.StatusError); !plain { //nolint:errorlint // what wraps the answer says what to do
		invalid.Words, invalid.Remedy = strings.Replace(err.Error(), status.Error(), words, 1), ""
	}
	return invalid
}

// wordsOf returns what an API server calls invalid, without Go syntax.
func wordsOf(s metav1.Status) string {
	var list []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Message == "" {
				continue
			}
			list = append(list, strings.TrimPrefix(c.Field+": "+withoutValue(c.Message), ": "))
		}
	}
	if len(list) > 0 {
		slices.Sort(list)
		return strings.Join(slices.Compact(list), "; ")
	}
	text := s.Message
	if rest, found := strings.CutPrefix(text, untyped); found {
		_, text, _ = strings.Cut(rest, "): ")
		text = goValue.ReplaceAllString(text, "$1")
	}
	if m := goField.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("%s: expected %s, got %s", m[2], typeName(m[3]), m[1])
	}
	return strings.TrimPrefix(withoutValue(text), ".")
}

var (
	goValue = regexp.MustCompile(`&?(?:value\.\w+)?\{(?:Value:)?([^{}]*)\}`)
	goField = regexp.MustCompile(`json: cannot unmarshal (\w+) into Go struct field \w+\.([\w.]+) of type (\S+)`)
)

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

// remedy is what to do about what an API server calls invalid.
func remedy(words, operator string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(words, p) })
	}
	switch {
	case has("duplicate entries for key"):
		return fmt.Sprintf("remove one of the two, or set %s/update-policy: replace, with which the last one counts", operator)
	case has("expected string, got"):
		return "quote the value"
	case has("field not declared in schema"):
		return "correct the name of the field or remove it"
	case has("metadata.name:"):
		return "rename the object"
	case has("immutable", "updates to", "may not change", "may not be changed"):
		return fmt.Sprintf("undo the change, or set %s/immutable-policy: recreate to have the object deleted and created again", operator)
	}
	return "change the manifest"
}
