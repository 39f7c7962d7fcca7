package trace

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

const (
	maxText  = 4096 // bytes of one text in an event
	maxValue = 256  // bytes of one value of a Drift
)

// NewDrift returns a difference at path. The values are formatted as JSON and truncated to 256
// bytes. If the field is sensitive, they are replaced with [Redacted].
func NewDrift(path string, want, have any, effect string, sensitive bool) Drift {
	if sensitive {
		return Drift{Path: path, Want: Redacted, Have: Redacted, Effect: effect}
	}
	return Drift{Path: path, Want: show(want), Have: show(have), Effect: effect}
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "(unset)"
	case error:
		return cut(v.Error(), maxValue)
	case fmt.Stringer:
		return cut(v.String(), maxValue)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%T)", v)
	}
	return cut(string(b), maxValue)
}

// cleaned returns e with clean texts, which most are: then it is e itself.
func cleaned(e Event) Event {
	texts, fields := textsOf(e)
	dirty := fields != nil // a record outlives the caller's slice
	for _, s := range texts {
		dirty = dirty || clean(s) != s
	}
	if !dirty {
		return e
	}
	return eachText(e, clean)
}

// textsOf returns all texts of e.
func textsOf(e Event) (texts [4]string, fields []string) {
	switch e := e.(type) {
	case Start:
		return [4]string{e.ResourceVersion}, nil
	case Decision:
		return [4]string{e.Rule, e.Action, e.Because}, nil
	case Call:
		return [4]string{e.Op, e.Target, e.Result, e.Err}, nil
	case Drift:
		return [4]string{e.Path, e.Want, e.Have, e.Effect}, nil
	case Write:
		return [4]string{e.Verb, e.Subresource, e.ResourceVersion, e.Err}, e.Fields
	case Transition:
		return [4]string{e.From, e.To, e.Reason, e.Message}, nil
	case End:
		return [4]string{e.Outcome, e.Err}, nil
	}
	panic(fmt.Sprintf("trace: event %T is not handled in textsOf; add it there", e))
}

// eachText returns e with f applied to all its texts.
func eachText(e Event, f func(string) string) Event {
	switch e := e.(type) {
	case Start:
		e.ResourceVersion = f(e.ResourceVersion)
		return e
	case Decision:
		e.Rule, e.Action, e.Because = f(e.Rule), f(e.Action), f(e.Because)
		return e
	case Call:
		e.Op, e.Target, e.Result, e.Err = f(e.Op), f(e.Target), f(e.Result), f(e.Err)
		return e
	case Drift:
		e.Path, e.Want, e.Have, e.Effect = f(e.Path), f(e.Want), f(e.Have), f(e.Effect)
		return e
	case Write:
		e.Verb, e.Subresource, e.ResourceVersion, e.Err = f(e.Verb), f(e.Subresource), f(e.ResourceVersion), f(e.Err)
		e.Fields = eachOf(e.Fields, f)
		return e
	case Transition:
		e.From, e.To, e.Reason, e.Message = f(e.From), f(e.To), f(e.Reason), f(e.Message)
		return e
	case End:
		e.Outcome, e.Err = f(e.Outcome), f(e.Err)
		return e
	}
	panic(fmt.Sprintf("trace: event %T is not handled in eachText; add it there", e))
}

// eachOf returns a copy, because a record outlives the caller's slice.
func eachOf(in []string, f func(string) string) []string {
	if in == nil {
		return nil
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

// clean removes secrets before it truncates, because half a secret is not recognized as one.
func clean(s string) string { return plain.Safe(cut(plain.Safe(s), maxText)) }

// cut truncates s to at most limit bytes, between runes, and adds an ellipsis.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
