package fault

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/plan"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
)

//arch:state a command line flag, which is one per process
var resumeFlag = flag.String("fault.resume", "", "go on where an exploration ran out of time: SCENARIO@NUMBER, from its notes")

// interval is after how much time a line says how far an exploration is.
const interval = 30 * time.Second

// clock is how much time an exploration has, and how far it is.
type clock struct {
	began time.Time
	until time.Time // zero: as long as it takes
	wrote time.Time // when the last line was written

	all, skipped, played int
	plays                time.Time // when the first schedule began
}

// What is left of the time until a test's deadline: for what comes after the schedules, and for each
// scenario of a suite that comes later.
const (
	margin  = time.Minute
	reserve = 20 * time.Second
)

// newClock returns a clock that begins to run.
func (e *exploration) newClock() clock {
	now := time.Now()
	c := clock{began: now, wrote: now}
	if d := e.options.budget; d > 0 {
		c.until = now.Add(d)
	} else if deadline, ok := e.t.Deadline(); ok {
		c.until = now.Add(allowed(deadline.Sub(now), e.options.later))
	}
	return c
}

// allowed is how much of the time that is left an exploration may take if so many others come later.
func allowed(left time.Duration, later int) time.Duration {
	left -= min(margin, left/8)
	return left - min(reserve*time.Duration(later), left/2)
}

// announce says how long it will take to play so many schedules, if that is not soon over.
func (e *exploration) announce() {
	workers := e.options.workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	c := &e.clock
	c.plays = time.Now()
	one := e.cost
	total := one * time.Duration(c.all-c.skipped) / time.Duration(workers)
	if total < interval {
		return
	}
	text := fmt.Sprintf("%d schedules, about %v (%.2f s each)", c.all-c.skipped, total.Round(time.Second), one.Seconds())
	if left := time.Until(c.until); !c.until.IsZero() && left < total {
		text += fmt.Sprintf("; there is time for about %d of them, the most telling first", max(1, int(left*time.Duration(workers)/one)))
	}
	e.say(text)
}

// progress says from time to time how far it is.
func (e *exploration) progress() {
	c := &e.clock
	c.played++
	if time.Since(c.wrote) < interval {
		return
	}
	c.wrote = time.Now()
	e.say(c.progress(time.Now(), len(e.report.Findings)))
}

// progress is how far it is, and how much time is left at the pace so far.
func (c *clock) progress(now time.Time, findings int) string {
	text := fmt.Sprintf("%d of %d schedules in %v, %s", c.skipped+c.played, c.all, now.Sub(c.began).Round(time.Second), plural(findings, "finding"))
	rest := c.all - c.skipped - c.played
	if c.played == 0 || rest <= 0 {
		return text
	}
	one := now.Sub(c.plays) / time.Duration(c.played)
	total := one * time.Duration(rest)
	if left := c.until.Sub(now); !c.until.IsZero() && left < total {
		return text + fmt.Sprintf("; at this pace, %.2f s each, there is time for about %d more", one.Seconds(), max(0, int(left/max(1, one))))
	}
	return text + fmt.Sprintf(", about %v left", total.Round(time.Second))
}

// unlessOver calls say if something is not over after a span.
func unlessOver(d time.Duration, say func()) (over func()) {
	timer := time.AfterFunc(d, say)
	return func() { timer.Stop() }
}

// say writes a line at once: the test's log may be seen at the end only.
func (e *exploration) say(text string) {
	fmt.Fprintf(os.Stderr, "fault: %s: %s\n", e.scenario.Name, text)
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

// stop notes what was left out because the time was over.
func (e *exploration) stop(played, of int) {
	if played == of {
		return
	}
	e.report.Unplayed = of - played
	e.plan.Pruned[plan.OutOfTime] += of - played
	e.report.Notes = append(e.report.Notes, fmt.Sprintf(
		"%d of %d schedules were not played, the time was over; go on with -fault.resume='%s@%d', or allow more with fault.Budget or go test's -timeout",
		of-played, e.clock.all, e.scenario.Name, e.clock.skipped+played))
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
