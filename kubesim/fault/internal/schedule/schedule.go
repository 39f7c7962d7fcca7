// Package schedule says which disturbances a run has and where. A token names all of them.
package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Disturbance is one thing that goes otherwise than in the undisturbed run.
type Disturbance struct {
	Kind string
	// At is the index of the call, of the read or pass to be stale, of the event, or of the step.
	At int
	// Arg says more: which race, which forgery, which drift, for how many passes events wait, what another controller
	// writes, how long a call takes, or the call before which a delete read its object; empty means the same call.
	Arg string
}

// The kinds of disturbances, as tokens name them.
const (
	CrashBefore = "crash-before" // the call has no effect and the process is dead
	CrashAfter  = "crash-after"  // the call has its effect and the process is dead
	LostAnswer  = "lost-answer"  // the call has its effect, the caller gets a timeout
	NoAnswer    = "no-answer"    // the call has no effect, the caller gets a timeout
	Conflict    = "conflict"     // somebody else writes the object first
	Throttled   = "throttled"    // 429 with Retry-After
	Failed      = "failed"       // 500
	Refused     = "refused"      // connection refused
	FailedAfter = "failed-after" // the call has its effect, the external API answers with an error
	StaleRead   = "stale-read"   // events wait until this cached read is over
	StalePass   = "stale-pass"   // events wait until this pass is over
	Lag         = "lag"          // an external read shows what was before the last change
	Twice       = "twice"        // an event comes twice
	Late        = "late"         // the events of one watch wait for so many passes, those of others do not
	Merged      = "merged"       // the same, and then the cache sees only what is left of them
	Gone        = "gone"         // a watch ends with 410 Gone, so that the cache lists again
	Closed      = "closed"       // a watch ends, and goes on where it was
	Replaced    = "replaced"     // somebody else's object takes the place of the one that this call deletes
	Contended   = "contended"    // another controller writes the object before this write and those that follow
	Race        = "race"         // a user acts just before this call
	Later       = "later"        // the same user comes after this step, when all is quiet
	Forged      = "forged"       // a user writes a status just before this call
	Drift       = "drift"        // when this step is over and all is quiet, somebody else deletes or edits what the operator made
	Drifted     = "drifted"      // the same just before this call
	Panic       = "panic"        // the author's code panics at this point of it
	Hang        = "hang"         // the author's code never returns from this point of it
	LateWrite   = "late-write"   // the process is dead, and the call arrives just before a later one, so many after it
	Frozen      = "frozen"       // the process stands still at this call, the next one begins, and then it goes on, so many calls later
	LateEffect  = "late-effect"  // the caller gets a timeout, and the call arrives just before a later one, so many after it
	SlowRequest = "slow-request" // the call takes so long before it has its effect
	SlowAnswer  = "slow-answer"  // the call has its effect, and its answer takes so long
	// Overtaken is a user's DELETE that had read its object just before another call and removes it
	// just after this one, with whatever was written to it meanwhile.
	Overtaken = "overtaken"
	// DeletedBefore and DeletedAfter are the same user's DELETE just before or just after a call, for
	// comparison.
	DeletedBefore = "deleted-before"
	DeletedAfter  = "deleted-after"
	// OldCache kills the process after the call; the caches of the next one begin with what there was so many
	// changes ago.
	OldCache = "old-cache"
	// Arrival is no part of a schedule: it names, in the record, the call as which a late write arrives.
	Arrival = "arrival"
	// Thawed is no part of a schedule either: it names the call with which a frozen process goes on.
	Thawed = "thawed"
	// Until is no disturbance: it ends a run after the step of that number.
	Until = "until"
)

// Family is what explorations are asked for: schedules of similar disturbances.
type Family string

// The families; package fault says what each is.
const (
	Crashes      Family = "crashes"
	Faults       Family = "faults"
	Stale        Family = "stale"
	Duplicates   Family = "duplicates"
	Pairs        Family = "pairs"
	Races        Family = "races"
	Forgeries    Family = "forgeries"
	Panics       Family = "panics"
	Hangs        Family = "hangs"
	Overtakes    Family = "overtaken"
	Absences     Family = "absences"
	Delays       Family = "delays"
	Breaks       Family = "breaks"
	Recoveries   Family = "recoveries"
	Replacements Family = "replacements"
	LateWrites   Family = "late-writes"
	Freezes      Family = "freezes"
	Contention   Family = "contention"
	OldCaches    Family = "old-caches"
	LateEffects  Family = "late-effects"
	SlowCalls    Family = "slow-calls"
	Drifts       Family = "drift"
)

// families are the kinds that a token may name, with the family of a schedule that has such a disturbance alone.
//
//arch:state a table that never changes
var families = map[string]Family{
	CrashBefore: Crashes, CrashAfter: Crashes,
	LostAnswer: Faults, NoAnswer: Faults, Conflict: Faults, Throttled: Faults, Failed: Faults, Refused: Faults, FailedAfter: Faults,
	StaleRead: Stale, StalePass: Stale, Lag: Stale,
	Twice: Duplicates,
	Late:  Delays, Merged: Delays,
	Gone: Breaks, Closed: Breaks,
	Race: Races, Later: Races,
	Overtaken: Overtakes, DeletedBefore: Overtakes, DeletedAfter: Overtakes,
	Forged: Forgeries,
	Panic:  Panics, Hang: Hangs,
	Replaced: Replacements, Contended: Contention, Drift: Drifts, Drifted: Drifts,
	LateWrite: LateWrites, Frozen: Freezes, LateEffect: LateEffects, OldCache: OldCaches,
	SlowRequest: SlowCalls, SlowAnswer: SlowCalls,
	Until: Faults,
}

// Family is the family of a schedule with this disturbance alone; empty for a kind that there is not.
func (d Disturbance) Family() Family { return families[d.Kind] }

// ReadAt is the call before which an overtaken DELETE read its object.
func (d Disturbance) ReadAt() int {
	if n, err := strconv.Atoi(d.Arg); err == nil {
		return n
	}
	return d.At
}

// String is the disturbance as a part of a token: "race@12(1)".
func (d Disturbance) String() string {
	if d.Arg != "" {
		return fmt.Sprintf("%s@%d(%s)", d.Kind, d.At, d.Arg)
	}
	return fmt.Sprintf("%s@%d", d.Kind, d.At)
}

// Schedule is the disturbances of one run; none is the undisturbed run.
type Schedule []Disturbance

// Family is the family that a schedule is counted in.
func (s Schedule) Family() Family {
	switch {
	case s.Has(Panic):
		return Panics
	case s.IsAbsence():
		return Absences
	case len(s) > 1 && s[1].Kind != Until:
		return Pairs
	}
	return s[0].Family()
}

// IsAbsence reports whether a user acts just after a crash, before the next process reads anything.
func (s Schedule) IsAbsence() bool {
	return len(s) >= 2 && s[0].Kind == CrashAfter && s[1].Kind == Race && s[1].At == s[0].At+1
}

// Disturbing returns those that change the course of a run.
func (s Schedule) Disturbing() Schedule {
	return slices.DeleteFunc(slices.Clone(s), func(d Disturbance) bool { return d.Kind == Until || d.Kind == Later })
}

// Has reports whether there is a disturbance of one of the kinds.
func (s Schedule) Has(kinds ...string) bool {
	return slices.ContainsFunc(s, func(d Disturbance) bool { return slices.Contains(kinds, d.Kind) })
}

// Find returns the disturbance of one of the kinds at index at.
func (s Schedule) Find(at int, kinds ...string) (Disturbance, bool) {
	for _, d := range s {
		if d.At == at && slices.Contains(kinds, d.Kind) {
			return d, true
		}
	}
	return Disturbance{}, false
}

// Shorter returns schedules with one disturbance less. What follows it may come a few calls
// earlier without it, because nothing is tried again, or one later.
func (s Schedule) Shorter() (all []Schedule) {
	for i := range s {
		for _, shift := range []int{0, -1, -2, -3, 1} {
			short := slices.Delete(slices.Clone(s), i, i+1)
			for k := i; k < len(short); k++ {
				short[k].At = max(0, short[k].At+shift)
			}
			all = append(all, short)
			if i == len(s)-1 {
				break // nothing follows
			}
		}
	}
	return all
}

const tokenVersion = "v1"

// Token names a schedule of a scenario, for replays: "v1/create-resize/crash-after@7".
func (s Schedule) Token(scenario string) string {
	return tokenVersion + "/" + scenario + "/" + s.String()
}

// String is the disturbances as in a token: "crash-after@7+until@1".
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return strings.Join(parts, "+")
}

// Parse is the inverse of [Schedule.Token].
func Parse(token string) (scenario string, s Schedule, err error) {
	version, rest, _ := strings.Cut(token, "/")
	cut := strings.LastIndexByte(rest, '/')
	if version != tokenVersion || cut < 0 {
		return "", nil, fmt.Errorf("replay token %q is not of the form %s/SCENARIO/KIND@NUMBER; copy it from a report", token, tokenVersion)
	}
	scenario, rest = rest[:cut], rest[cut+1:]
	if rest == "" {
		return scenario, nil, nil
	}
	for part := range strings.SplitSeq(rest, "+") {
		kind, where, _ := strings.Cut(part, "@")
		number, arg, _ := strings.Cut(strings.TrimSuffix(where, ")"), "(")
		at, err := strconv.Atoi(number)
		d := Disturbance{Kind: kind, At: at, Arg: arg}
		if err == nil && kind != "" && d.Family() == "" {
			return "", nil, fmt.Errorf("replay token %q: there is no kind %q; the kinds are %s", token, kind, strings.Join(slices.Sorted(maps.Keys(families)), ", "))
		}
		if err != nil || d.Family() == "" {
			return "", nil, fmt.Errorf("replay token %q: %q is not KIND@NUMBER; copy it from a report", token, part)
		}
		s = append(s, d)
	}
	return scenario, s, nil
}
