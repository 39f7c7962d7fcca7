package sandbox

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// External is the author's fake of an external API.
type External struct {
	// Fake is the author's value.
	Fake any
	// Resources are all that exists there.
	Resources func() []history.Resource
	// Copy is the same API, independent from now on; nil if it cannot be copied.
	Copy func() *External
}

// MisuseError is a mistake in a scenario because of which less would be tried, or believed, than its
// author thinks. It ends an exploration whenever it shows.
type MisuseError string

// Error is the mistake in a sentence.
func (m MisuseError) Error() string { return string(m) }

// IsSame reports whether two fakes are one, so that a run begins with what is left of another.
func IsSame(a, b *External) bool {
	if a == nil || b == nil {
		return false
	}
	x, y := reflect.ValueOf(a.Fake), reflect.ValueOf(b.Fake)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Pointer() == y.Pointer() && x.Type().Elem().Size() > 0
}

// checkExternal finds mistakes in the external API of a new sandbox.
func checkExternal(made bool, e *External, lag time.Duration) error {
	switch {
	case made && e == nil:
		return MisuseError("ExternalAPI returned nil; leave it out if there is no external API")
	case lag > 0 && !made:
		return MisuseError("Lag is set, but there is no ExternalAPI whose reads could lag")
	case lag > 0 && e.Copy == nil:
		return MisuseError(fmt.Sprintf("Lag is set, but no read can lag behind a %T: it needs a method Clone", e.Fake))
	}
	return nil
}

// checkCopy compares what a copy shows at the moment it was made for with what the original showed then.
func (s *Sandbox) checkCopy(then []history.Resource) error {
	now := s.Resources()
	for _, r := range then {
		if !slices.Contains(now, r) {
			return MisuseError(fmt.Sprintf("the Clone of a %T loses or changes %s %s; copy maps, slices and the values of pointers", s.external.Fake, r.Kind, r.ID))
		}
	}
	for _, r := range now {
		if !slices.Contains(then, r) {
			return MisuseError(fmt.Sprintf("the Clone of a %T has %s %s, which was made after it; copy maps, slices and the values of pointers", s.external.Fake, r.Kind, r.ID))
		}
	}
	return nil
}

// Resources lists what exists at the external API now, in order.
func (s *Sandbox) Resources() []history.Resource {
	if s.external == nil {
		return nil
	}
	all := s.external.Resources()
	slices.SortFunc(all, func(a, b history.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Observe notes what exists at the external API if it is not what it was, and reports whether. call is
// the operator's call that made it so, or [history.Nobody].
func (s *Sandbox) Observe(call int) bool {
	now, run := s.Resources(), s.record.Run
	if last := run.External; len(last) > 0 && slices.Equal(last[len(last)-1].Resources, now) {
		return false
	}
	run.External = append(run.External, history.View{At: time.Now(), Call: call, Step: s.record.Step(), Resources: now})
	return true
}

// External is the external API; nil if there is none.
func (s *Sandbox) External() *External { return s.external }

// Earlier is the external API as it was before the last write; nil if that was not kept, or is longer ago than
// reads may lag.
func (s *Sandbox) Earlier() *External {
	if time.Since(s.written) >= s.Lag {
		return nil
	}
	return s.earlier
}

// KeepEarlier keeps the external API as it is, for reads that lag behind what follows.
func (s *Sandbox) KeepEarlier() {
	if s.external != nil && s.external.Copy != nil {
		s.earlier, s.written = s.external.Copy(), time.Now()
	}
}
