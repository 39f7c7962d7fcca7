package fault

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

//arch:state a command line flag, which is one per process
var resumeFlag = flag.String("fault.resume", "", "go on where an exploration ran out of time: SCENARIO@NUMBER, from its notes")

// clock is how much time an exploration has, and how many schedules.
type clock struct {
	began time.Time
	until time.Time // when the last schedule begins; zero: as long as it takes
	last  time.Time // when nothing is played any more, or the test's deadline comes before the report; zero: it has none

	all, skipped int
}

// What is left of the time until a test's deadline: for what comes after the schedules, and for each
// scenario of a suite that comes later.
const (
	margin  = time.Minute
	reserve = 20 * time.Second
	// least is for a run that is being played, and for the report: the test's end by its deadline would lose those of all scenarios.
	least = 5 * time.Second
)

// newClock returns a clock that begins to run.
func (e *exploration) newClock() clock {
	deadline, _ := e.t.Deadline()
	return clockFor(time.Now(), deadline, e.options)
}

// clockFor returns a clock for an exploration that begins now, in a test with a deadline; zero if it has none.
func clockFor(now, deadline time.Time, o options) clock {
	c := clock{began: now}
	if !deadline.IsZero() {
		left := deadline.Sub(now)
		c.until = now.Add(allowed(left, o.later))
		c.last = deadline.Add(-max(least, min(margin, left/8)/2))
	}
	if o.budget > 0 {
		c.until = now.Add(o.budget)
	}
	if !c.last.IsZero() && c.last.Before(c.until) {
		c.until = c.last
	}
	return c
}

// allowed is how much of the time that is left an exploration may take if so many others come later.
func allowed(left time.Duration, later int) time.Duration {
	left -= min(margin, left/8)
	return left - min(reserve*time.Duration(later), left/2)
}

// sift leaves out what is not to be played: what another exploration has played, and what is too much.
func (e *exploration) sift(jobs []run.Job) ([]run.Job, error) {
	if seed := e.options.seed; seed > 0 {
		plan.Shuffle(jobs, seed)
	} else {
		jobs = plan.Order(jobs)
	}
	if most := e.options.most[""]; most > 0 && len(jobs) > most {
		e.plan.Pruned[plan.Thinned] += len(jobs) - most
		jobs = jobs[:most]
	}
	e.clock.all = len(jobs)
	_, from, err := resumption()
	if err != nil || from == 0 {
		return jobs, err
	}
	if from >= len(jobs) {
		return nil, fmt.Errorf("-fault.resume=%s: the scenario has %d schedules", *resumeFlag, len(jobs))
	}
	e.clock.skipped = from
	return jobs[from:], nil
}

// resumption is the scenario to go on with and the number of schedules that were played of it; "" if there
// is none.
func resumption() (scenario string, from int, err error) {
	if *resumeFlag == "" {
		return "", 0, nil
	}
	at := strings.LastIndexByte(*resumeFlag, '@')
	if at > 0 {
		from, err = strconv.Atoi((*resumeFlag)[at+1:])
	}
	if at <= 0 || err != nil || from < 0 {
		return "", 0, fmt.Errorf("-fault.resume=%s is not of the form SCENARIO@NUMBER; copy it from the notes of an exploration", *resumeFlag)
	}
	return (*resumeFlag)[:at], from, nil
}
