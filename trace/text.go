package trace

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

type textSink struct {
	mu    sync.Mutex
	w     io.Writer
	width int // of the object's column; grows to fit
}

// Text returns a sink that writes each record to w as one readable line:
//
//	15:04:05.000  Stream default/orders  create   orders -> ok  3ms
//
// Records that w refuses are lost. If w can block, wrap the sink in a [Buffer].
func Text(w io.Writer) Sink { return &textSink{w: w} }

func (s *textSink) Record(r Record) {
	const widest = 48
	object := printable(r.Object.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width = max(s.width, min(utf8.RuneCountInString(object), widest))
	line := fmt.Sprintf("%s  %-*s  %s", r.Time.Format("15:04:05.000"), s.width, object, describe(r.Event))
	if took := duration(r.Event); took >= time.Microsecond {
		line += "  " + brief(took)
	}
	_, _ = io.WriteString(s.w, line+"\n") // there is nowhere to report it
}

// Transcript formats records for comparison in tests: pass by pass, in the order in which the
// passes began, without times, durations of calls, UIDs and resource versions. Passes are numbered
// per object, so that concurrent passes of other objects do not change the transcript.
func Transcript(records []Record) string {
	var out strings.Builder
	count := map[string]int{}
	for i, pass := range passes(records) {
		if i > 0 {
			out.WriteByte('\n')
		}
		object := printable(pass[0].Object.String())
		count[object]++
		fmt.Fprintf(&out, "%s, pass %d\n", object, count[object])
		for _, r := range pass {
			fmt.Fprintf(&out, "  %s\n", describe(r.Event))
		}
	}
	return out.String()
}

// passes groups records by pass; concurrent passes may be interleaved. A Start always begins a
// new pass, because numbers repeat when a process is restarted.
func passes(records []Record) [][]Record {
	type key struct {
		controller string
		object     Object
		pass       uint64
	}
	var all [][]Record
	current := map[key]int{}
	for _, r := range records {
		k := key{r.Controller, r.Object, r.Pass}
		i, known := current[k]
		if _, start := r.Event.(Start); start || !known {
			i = len(all)
			all, current[k] = append(all, nil), i
		}
		all[i] = append(all[i], r)
	}
	return all
}

// describe returns the event on one line, without anything that differs from run to run.
func describe(e Event) string {
	verb, text := words(e)
	return printable(strings.TrimRight(fmt.Sprintf("%-8s %s", verb, text), " "))
}

func words(e Event) (verb, text string) {
	switch e := e.(type) {
	case Start:
		return "start", startWords(e)
	case Decision:
		return "decide", join(e.Rule, prefixed(e.Action, ": ", e.Because))
	case Call:
		return e.Op, join(e.Target, "->", answer(e.Result, e.Err))
	case Drift:
		return "drift", fmt.Sprintf("%s: want %s, have %s (%s)", e.Path, e.Want, e.Have, e.Effect)
	case Write:
		return e.Verb, writeWords(e)
	case Transition:
		return "state", transitionWords(e)
	case End:
		return "end", endWords(e)
	}
	panic(fmt.Sprintf("trace: event %T has no words; add it to words", e))
}

func startWords(e Start) string {
	s := fmt.Sprintf("generation %d", e.Generation)
	if e.Deleting {
		s += ", deleting"
	}
	if e.Vanished {
		s += ", vanished"
	}
	if e.Attempt > 0 {
		s += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	return s
}

func writeWords(e Write) string {
	s := "object"
	if e.Subresource != "" {
		s = e.Subresource
	}
	s = prefixed(s, ": ", strings.Join(e.Fields, ", "))
	if e.Err != "" {
		s = join(s, "->", answer("", e.Err))
	}
	return s
}

func transitionWords(e Transition) string {
	from := e.From
	if from == "" {
		from = "(new)"
	}
	to := from + " → " + e.To
	if e.Reason != "" {
		to += " (" + e.Reason + ")"
	}
	return prefixed(to, ": ", e.Message)
}

func endWords(e End) string {
	s := prefixed(e.Outcome, ": ", e.Err)
	if e.Again > 0 {
		s += "; again in " + brief(e.Again)
	}
	return s
}

func answer(result, err string) string {
	if err != "" {
		return prefixed(result, ", ", "error: "+err)
	}
	if result == "" {
		return "ok"
	}
	return result
}

// prefixed returns a, between and b. If a or b is empty, it returns the other one.
func prefixed(a, between, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + between + b
}

// join joins the words that are not empty with spaces.
func join(words ...string) string {
	s := ""
	for _, w := range words {
		s = prefixed(s, " ", w)
	}
	return s
}

// duration returns how long the event took, or zero if it has no duration.
func duration(e Event) time.Duration {
	switch e := e.(type) {
	case Call:
		return e.Took
	case End:
		return e.Took
	case Start, Decision, Drift, Write, Transition:
		return 0
	}
	panic(fmt.Sprintf("trace: event %T is not handled in duration; add it there", e))
}

// brief formats d with at most three digits and without zero units: 1.23s, 10m, 9h12m.
func brief(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(100 * time.Microsecond)
	default:
		d = d.Round(time.Microsecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// printable replaces characters that would break the line or control the terminal, because
// texts come from other systems.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
