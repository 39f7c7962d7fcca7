package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// disturbance is one thing that goes otherwise than in the undisturbed run.
type disturbance struct {
	kind string
	// at is the index of the call, of the read or pass to be stale, or of the event.
	at int
	// arg is which race, or the call before which a delete read its object; empty for the same.
	arg string
}

// The kinds of disturbances, as tokens name them.
const (
	crashBefore = "crash-before" // F1: the call has no effect and the process is dead
	crashAfter  = "crash-after"  // F2: the call has its effect and the process is dead
	lostAnswer  = "lost-answer"  // F3: the call has its effect, the caller gets a timeout
	noAnswer    = "no-answer"    // F4: the call has no effect, the caller gets a timeout
	conflict    = "conflict"     // F5: somebody else writes the object first
	throttled   = "throttled"    // F6: 429 with Retry-After
	failed      = "failed"       // F7: 500
	refused     = "refused"      // F7: connection refused
	failedAfter = "failed-after" // F16: the effect happens, the vendor answers with an error
	staleRead   = "stale-read"   // F9: events wait until this cached read is over
	stalePass   = "stale-pass"   // F9: events wait until this pass is over
	lag         = "lag"          // F15: an outside read shows what was before the last change
	twice       = "twice"        // F12: an event comes twice
	race        = "race"         // F18: a user acts just before this call
	later       = "later"        // the same user comes after this step, when all is quiet
	forged      = "forged"       // a user writes a status just before this call
	panics      = "panic"        // the author's code panics at this point of it
	hangs       = "hang"         // the author's code never returns from this point of it
	// A user's DELETE that had read its object just before another call removes it just after
	// this one, with whatever was written to it meanwhile.
	overtaken = "overtaken"
	// The same user's DELETE just before or just after a call, for comparison.
	deletedBefore = "deleted-before"
	deletedAfter  = "deleted-after"
)

// kinds lists all that a token may name.
func kinds() []string {
	return []string{
		crashBefore, crashAfter, lostAnswer, noAnswer, conflict, throttled, failed, refused, failedAfter,
		staleRead, stalePass, lag, twice, race, later, forged, panics, hangs, overtaken, deletedBefore, deletedAfter, until,
	}
}

func kindOf(d disturbance) Kind {
	switch d.kind {
	case crashBefore, crashAfter:
		return Crashes
	case staleRead, stalePass, lag:
		return Stale
	case twice:
		return Duplicates
	case race, later:
		return Races
	case forged:
		return Forgeries
	case panics:
		return Panics
	case hangs:
		return Hangs
	case overtaken, deletedBefore, deletedAfter:
		return Overtaken
	}
	return Faults
}

func kindOfAll(s schedule) Kind {
	if slices.ContainsFunc(s, func(d disturbance) bool { return d.kind == panics }) {
		return Panics
	}
	if len(s) > 1 && s[1].kind != until {
		return Pairs
	}
	return kindOf(s[0])
}

func (d disturbance) String() string {
	if d.arg != "" {
		return fmt.Sprintf("%s@%d(%s)", d.kind, d.at, d.arg)
	}
	return fmt.Sprintf("%s@%d", d.kind, d.at)
}

// schedule is the disturbances of one run; none is the undisturbed run.
type schedule []disturbance

// disturbing returns those that change the course of a run.
func (s schedule) disturbing() schedule {
	return slices.DeleteFunc(slices.Clone(s), func(d disturbance) bool { return d.kind == until || d.kind == later })
}

// find returns the disturbance of one of the kinds at index at.
func (s schedule) find(at int, kinds ...string) (disturbance, bool) {
	for _, d := range s {
		if d.at == at && slices.Contains(kinds, d.kind) {
			return d, true
		}
	}
	return disturbance{}, false
}

const tokenVersion = "v1"

// token names a schedule of a scenario, for replays: "v1/create-resize/crash-after@7".
func (s schedule) token(scenario string) string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return tokenVersion + "/" + scenario + "/" + strings.Join(parts, "+")
}

// parseToken is the inverse of token.
func parseToken(token string) (scenario string, s schedule, err error) {
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
		if err != nil || !slices.Contains(kinds(), kind) {
			return "", nil, fmt.Errorf("replay token %q: %q is not KIND@NUMBER; copy it from a report", token, part)
		}
		s = append(s, disturbance{kind: kind, at: at, arg: arg})
	}
	return scenario, s, nil
}
