package external

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/api"
)

// settings is what the annotations of an object ask for.
type settings struct {
	pause  Pause
	until  time.Time // when pause ends; zero: never
	policy Policy
	// problems say which annotations cannot be understood, and what holds instead.
	problems []string
}

// readSettings reads the annotations that limit what may be done. It fails closed: what
// cannot be understood means the least.
func readSettings(annotations map[string]string, now time.Time) settings {
	var s settings
	s.readPause(annotations[api.AnnotationPaused], now)
	s.readAccess(annotations[api.AnnotationAccess])
	s.readAdoption(annotations[api.AnnotationAdoption])
	s.readDeletion(annotations[api.AnnotationDeletion])
	return s
}

func (s *settings) problem(annotation, value, allowed, instead string) {
	s.problems = append(s.problems, fmt.Sprintf("annotation %s: %q is not %s; %s until it is corrected",
		annotation, value, allowed, instead))
}

func (s *settings) readPause(value string, now time.Time) {
	switch v := strings.ToLower(strings.TrimSpace(value)); v {
	case "", "false":
		return
	case "true":
		s.pause = PauseChanges
		return
	case "all":
		s.pause = PauseAll
		return
	}
	until, err := time.Parse(time.RFC3339, strings.TrimSpace(value))
	switch {
	case err != nil:
		s.pause = PauseChanges
		s.problem(api.AnnotationPaused, value, `"true", "all", "false" or a time like 2030-01-31T12:00:00Z`, "changes are paused")
	case now.Before(until):
		s.pause, s.until = PauseChanges, until
	}
}

// access is the grammar of the permissions annotation.
var access = regexp.MustCompile(`^(none|read-only|[cud]{1,3})$`)

// readAccess takes "CUD", "c,u", "none", "read-only"; letters may not repeat, so that a
// word that happens to be made of them grants nothing.
func (s *settings) readAccess(value string) {
	v := strings.ToLower(strings.NewReplacer(",", "", " ", "", "\t", "").Replace(value))
	if value == "" { // blanks and commas alone are no such word
		s.policy.Create, s.policy.Update, s.policy.Delete = true, true, true
		return
	}
	if !access.MatchString(v) || repeats(v) {
		s.problem(api.AnnotationAccess, value, `letters of "CUD", "none" or "read-only"`, "the external thing is only read")
		return
	}
	if v == "none" || v == "read-only" {
		return
	}
	s.policy.Create = strings.Contains(v, "c")
	s.policy.Update = strings.Contains(v, "u")
	s.policy.Delete = strings.Contains(v, "d")
}

// repeats tells whether a letter of "cud" occurs twice.
func repeats(v string) bool {
	if len(v) > 3 { // none, read-only
		return false
	}
	return strings.Count(v, "c") > 1 || strings.Count(v, "u") > 1 || strings.Count(v, "d") > 1
}

func (s *settings) readAdoption(value string) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "if-marked":
		s.policy.Adoption = AdoptIfMarked
	case "never":
		s.policy.Adoption = AdoptNever
	case "if-identical":
		s.policy.Adoption = AdoptIfIdentical
	case "always":
		s.policy.Adoption = AdoptAlways
	default:
		s.policy.Adoption = AdoptNever
		s.problem(api.AnnotationAdoption, value, `"never", "if-marked", "if-identical" or "always"`, "nothing is taken over")
	}
}

func (s *settings) readDeletion(value string) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "delete":
	case "orphan":
		s.policy.Orphan = true
	default:
		s.policy.DeletionUnclear = true
		s.problem(api.AnnotationDeletion, value, `"delete" or "orphan"`, "the external thing is neither deleted nor left")
	}
}
