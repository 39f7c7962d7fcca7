package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/loop"
)

// settings is what the annotations of an object ask for.
type settings struct {
	until  time.Time // when pause ends; zero: never
	pause  decide.Pause
	policy decide.Policy
	// from is the UID of the owner from which to adopt; empty if none is named.
	from string
	// interval is how often the resource is observed; 0 leaves that to the kind.
	interval time.Duration
	// lateInit: the spec is to be completed.
	lateInit bool
	// limits are the most that the annotations may ask for.
	limits limits
	// problems say which annotations are invalid, and what holds instead.
	problems []string
}

// readSettings reads the annotations that limit what may be done. It fails closed: an invalid
// value grants the least.
func readSettings(annotations map[string]string, now time.Time, l limits) settings {
	s := settings{limits: l}
	s.readPause(annotations[api.AnnotationPaused], now)
	s.readAccess(annotations[api.AnnotationAccess])
	s.readAdoption(annotations[api.AnnotationAdoption])
	s.readDeletion(annotations[api.AnnotationDeletion])
	s.readInterval(annotations[api.AnnotationInterval])
	s.readLateInit(annotations[api.AnnotationLateInit])
	return s
}

func (s *settings) problem(text string) { s.problems = append(s.problems, text) }

func (s *settings) readPause(value string, now time.Time) {
	switch v := strings.ToLower(strings.TrimSpace(value)); v {
	case "", "false":
		return
	case "true":
		s.pause = decide.PauseChanges
		return
	case "all":
		s.pause = decide.PauseAll
		return
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(value))
	switch {
	case err != nil:
		s.pause = decide.PauseChanges
		s.problem(decide.InvalidPause(value))
	case now.Before(until):
		s.pause, s.until = decide.PauseChanges, until
	}
}

// readAccess reads values such as "CUD", "c,u", "none" and "read-only".
func (s *settings) readAccess(value string) {
	s.policy.Create, s.policy.Update, s.policy.Delete = s.limits.create, s.limits.update, s.limits.remove
	if value == "" { // a value of blanks and commas alone is invalid, not empty
		return
	}
	letters, ok := api.AccessLetters(value)
	if !ok {
		s.policy.Create, s.policy.Update, s.policy.Delete = false, false, false
		s.problem(decide.InvalidAccess(value))
		return
	}
	c, u, d := lettersOf(letters)
	if c && !s.limits.create || u && !s.limits.update || d && !s.limits.remove {
		s.beyond(api.AnnotationAccess, value, "access-limit")
	}
	s.policy.Create, s.policy.Update, s.policy.Delete = c && s.limits.create, u && s.limits.update, d && s.limits.remove
}

func lettersOf(v string) (create, update, remove bool) {
	return strings.Contains(v, "c"), strings.Contains(v, "u"), strings.Contains(v, "d")
}

func (s *settings) readAdoption(value string) {
	word := strings.ToLower(strings.TrimSpace(value))
	from, stated := strings.CutPrefix(word, api.AdoptionFrom)
	asked, ok := adoptionOf(word)
	switch {
	case word == "":
		asked = decide.AdoptIfMarked
	case stated && from != "":
		asked = decide.AdoptIfMarked
		if s.limits.adoption < decide.AdoptAlways {
			s.beyond(api.AnnotationAdoption, value, "adoption-limit")
			break
		}
		s.from = from
	case !ok:
		asked = decide.AdoptNever
		s.problem(decide.InvalidAdoption(value))
	case asked > s.limits.adoption:
		s.beyond(api.AnnotationAdoption, value, "adoption-limit")
	}
	s.policy.Adoption = min(asked, s.limits.adoption)
}

func adoptionOf(word string) (a decide.Adoption, ok bool) {
	switch word {
	case api.AdoptionNever:
		return decide.AdoptNever, true
	case api.AdoptionIfMarked:
		return decide.AdoptIfMarked, true
	case api.AdoptionIfIdentical:
		return decide.AdoptIfIdentical, true
	case api.AdoptionAlways:
		return decide.AdoptAlways, true
	}
	return decide.AdoptNever, false
}

func (s *settings) readDeletion(value string) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "":
		s.policy.Orphan = s.limits.orphan
	case "delete":
	case "orphan":
		s.policy.Orphan = true
	default:
		s.policy.DeletionUnclear = true
		s.problem(decide.InvalidDeletion(value))
	}
}

// shortestInterval bounds what an object may cost.
const shortestInterval = time.Second

func (s *settings) readInterval(value string) {
	if value == "" {
		return
	}
	interval, err := time.ParseDuration(strings.TrimSpace(value))
	if err != nil || interval < shortestInterval {
		s.problem(decide.InvalidInterval(value))
		return
	}
	s.interval = interval
}

func (s *settings) readLateInit(value string) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "false":
	case "true":
		s.lateInit = true
	default:
		s.problem(decide.InvalidLateInit(value))
	}
}

// beyond notes a problem: an annotation asks for more than it may.
func (s *settings) beyond(annotation, value, flag string) {
	s.problems = append(s.problems, fmt.Sprintf("annotation %s: %q is more than the operator allows here; whoever runs it can allow more with %s",
		annotation, value, decide.Flag(flag, s.limits.namespace, "...")))
}

// limits are the most that annotations may ask for in one namespace, and the defaults without
// annotations.
type limits struct {
	namespace              string
	adoption               decide.Adoption
	create, update, remove bool
	orphan                 bool
}

// limits combines what the driver author allows with what whoever runs the operator decided. For
// adoption the latter decides; for access the smaller grant holds. An invalid value grants the
// least.
func (e *Engine) limits(terms loop.Terms, namespace string) limits {
	l := limits{namespace: namespace, adoption: decide.AdoptIfMarked, orphan: e.options.Limits.Deletion == "orphan"}
	if word := cmp.Or(terms.Adoption.In(namespace), e.options.Limits.Adoption); word != "" {
		l.adoption, _ = adoptionOf(word)
	}
	l.create, l.update, l.remove = true, true, true
	for _, value := range []string{e.options.Limits.Access, terms.Access.In(namespace)} {
		if value == "" {
			continue
		}
		letters, _ := api.AccessLetters(value)
		c, u, d := lettersOf(letters)
		l.create, l.update, l.remove = l.create && c, l.update && u, l.remove && d
	}
	return l
}

// Limits are the most that annotations may ask for according to the driver author, with the
// meaning that package external gives them.
type Limits struct{ Adoption, Access, Deletion string }

// Check reports every problem at once.
func (l Limits) Check() error {
	var problems []error
	if _, ok := adoptionOf(l.Adoption); l.Adoption != "" && !ok {
		problems = append(problems, fmt.Errorf("adoption %q is not never, if-marked, if-identical or always", l.Adoption))
	}
	if _, ok := api.AccessLetters(l.Access); l.Access != "" && !ok {
		problems = append(problems, fmt.Errorf("access %q is not letters of CUD, none or read-only", l.Access))
	}
	if l.Deletion != "" && l.Deletion != "delete" && l.Deletion != "orphan" {
		problems = append(problems, fmt.Errorf("deletion %q is not delete or orphan", l.Deletion))
	}
	return errors.Join(problems...)
}
