package report_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/report"
)

var update = flag.Bool("update", false, "accept what is told now into testdata")

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// run is the life of a queue, with a fault at the call that makes it.
func run(kind string) *history.Run {
	r := &history.Run{
		Scenario: "create-delete",
		Passes:   []history.Pass{{Object: "default/shop"}, {Index: 1, Process: 1, Object: "default/shop"}},
		Steps:    []history.Step{{Name: "create shop", At: start}, {Name: "delete shop", Call: 9}},
	}
	call := func(process, pass int, verb, resource, sub string, write bool) {
		c := history.Call{
			Index: len(r.Calls), At: start.Add(time.Duration(len(r.Calls)) * 700 * time.Millisecond), Process: process, Pass: pass,
			Verb: verb, Resource: resource, Subresource: sub, Namespace: "default", Name: "shop", Write: write, Changed: write, Code: 200,
		}
		if verb == "read" {
			c.Side, c.What, c.Changed = history.External, resource, false
		}
		if verb == "write" {
			c.Side, c.What = history.External, resource
		}
		r.Calls = append(r.Calls, c)
	}
	call(0, -1, "list", "queues", "", false)
	call(0, -1, "create", "leases", "", true)
	call(0, 0, "read", "find queue shop", "", false)
	call(0, 0, "patch", "queues", "", true)
	call(0, 0, "write", "create queue shop with a name that goes on and on", "", true)
	call(1, -1, "list", "queues", "", false)
	call(1, 1, "read", "find queue shop", "", false)
	call(1, 1, "write", "create queue shop", "", true)
	call(1, 1, "patch", "queues", "status", true)
	call(1, 1, "write", "delete queue shop", "", true)
	call(1, 1, "patch", "queues", "", true)
	for range 20 {
		call(1, 1, "read", "find queue shop", "", false)
	}
	switch kind {
	case "statuses": // of an external API over HTTP
		for i, code := range map[int]int{2: 404, 4: 409, 6: 304, 7: 201, 9: 299, 11: 499} {
			r.Calls[i].Code = code
		}
		r.Calls[12].Code, r.Calls[12].Err = 503, "fault: no answer came in time"
	case "crash-after":
		r.Calls[4].Err, r.Calls[4].Fault = "the process was killed", kind
		r.Faults = []history.Fault{{Kind: kind, Call: 4, At: "create queue shop", Time: r.Calls[4].At}}
	case "stale-pass":
		r.Faults = []history.Fault{{Kind: kind, Call: history.Nobody, Next: 6, At: "pass of default/shop", Time: r.Calls[6].At}}
		r.Passes[1].Stale = true
	}
	return r
}

func TestText(t *testing.T) {
	leak := history.Violation{
		Invariant: "I2", Title: "no leak", Call: 9,
		Message: "external resource queue q-1 still exists, but the object that it was made for, queues.demo.dev default/shop, is gone; nothing will remove it",
	}
	ends := history.Violation{
		Invariant: "I1", Title: "ends as without the disturbance", Call: history.Nobody, Message: `step "delete shop" does not end as it does without the disturbance`,
		Detail: "+ external queue q-1 (owner: uid(gone), ready: true, state: size 1)\n",
	}
	long := ends
	long.Detail = strings.Repeat("- a line that is one of many\n", 40)
	tests := map[string]report.Input{
		"crash": {Test: "TestQueue", Package: "example.com/op/internal/queue", Token: "v1/create-delete/crash-after@4", Run: run("crash-after"), Violations: []history.Violation{leak, ends}},
		"stale": {Test: "TestQueue/sub", Token: "v1/create delete/race@4(1)", Run: run("stale-pass"), Violations: []history.Violation{long}},
		"plain": {Test: "TestQueue", Token: "v1/create-delete/", Run: run(""), Violations: []history.Violation{
			{Invariant: "I17", Title: "bounded goroutines", Message: "process 1 ended and left a goroutine behind", Detail: "goroutine 7 [sleep]:\n\tmain.f()", Call: history.Nobody},
			ends, ends, ends, ends, ends,
		}},
		"statuses": {Test: "TestQueue", Token: "v1/create-delete/", Run: run("statuses"), Violations: []history.Violation{{Invariant: "I1", Message: "x", Call: history.Nobody}}},
		"silent":   {Test: "TestQueue", Token: "v1/create-delete/", Run: &history.Run{}, Violations: []history.Violation{{Invariant: "I15", Title: "role closure", Message: "no role allows it", Call: history.Nobody}}},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			got := report.Text(in)
			golden(t, name, got)
			lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			if len(lines) > 55 {
				t.Errorf("%d lines are too many to see at a glance", len(lines))
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 100 && !strings.HasPrefix(line, "replay: ") && !strings.Contains(line, "  default/shop") && !strings.Contains(line, " default/shop  ") && !strings.HasPrefix(line, "     call") {
					t.Errorf("a line is wider than 100 columns: %s", line)
				}
			}
		})
	}
}

// TestIdle proves that of calls that change nothing, of discovery and of watches only those are shown that are disturbed, unless
// the finding is about such calls.
func TestIdle(t *testing.T) {
	for id, want := range map[string]bool{"I1": false, "I5": true} {
		r := run("crash-after")
		for range 8 {
			r.Calls = append(r.Calls, r.Calls[3])
		}
		copy(r.Calls[12:], r.Calls[4:])
		for i := range r.Calls {
			r.Calls[i].Index = i
			if i >= 4 && i < 12 {
				r.Calls[i] = history.Call{Index: i, At: r.Calls[i].At, Verb: "update", Resource: "queues", Name: "idle", Write: true, Code: 200}
			}
			if i == 11 {
				r.Calls[i].Verb, r.Calls[i].Write, r.Calls[i].Resource, r.Calls[i].Name = "get", false, "/apis/demo.dev", ""
			}
		}
		r.Faults[0].Call = 12
		text := report.Text(report.Input{Run: r, Violations: []history.Violation{{Invariant: id, Call: history.Nobody}}})
		if got := strings.Contains(text, "update queues idle"); got != want || strings.Count(text, "/apis") > 1 {
			t.Errorf("in a finding of %s, what changes nothing is shown: %v, want %v\n%s", id, got, want, text)
		}
	}
}

// TestMarks proves that the line on a disturbance names the object and the watch that it is about, also if no call follows.
func TestMarks(t *testing.T) {
	const change = "the change of queues.demo.dev default/shop"
	tests := map[string]struct {
		fault history.Fault
		want  string
	}{
		"late": {
			history.Fault{Kind: "late", At: "events of demo.dev/queues", Event: change},
			"late: " + change + ", and what follows in the watch of demo.dev/queues, waits while the operator goes on",
		},
		"merged": {
			history.Fault{Kind: "merged", At: "events of demo.dev/queues", Event: change},
			"merged: " + change + ", and what follows in the watch of demo.dev/queues, waits while the operator goes on; then the cache sees only the last versions",
		},
		"gone": {
			history.Fault{Kind: "gone", At: "events of demo.dev/queues", Event: change},
			"gone: before " + change + ", the watch of demo.dev/queues ends with 410 Gone, the cache lists again",
		},
		"closed": {
			history.Fault{Kind: "closed", At: "events of demo.dev/queues", Event: change},
			"closed: before " + change + ", the watch of demo.dev/queues ends, and is opened again",
		},
		"twice": {history.Fault{Kind: "twice", At: "event of demo.dev/queues/default/shop", Event: change}, "twice: " + change + " comes once more"},
		"stale-read": {
			history.Fault{Kind: "stale-read", At: "get queues default/shop"},
			"stale-read: just before, get queues default/shop does not show what the API server has sent already",
		},
		"stale-pass": {
			history.Fault{Kind: "stale-pass", At: "pass of default/shop"},
			"stale-pass: the reconcile of default/shop does not see what the API server has sent already",
		},
	}
	for name, test := range tests {
		for _, call := range []int{9, len(run("").Calls)} {
			r := run("")
			test.fault.Call, test.fault.Time = call, r.Calls[9].At
			r.Faults = []history.Fault{test.fault}
			text := report.Text(report.Input{Run: r, Violations: []history.Violation{{Invariant: "I1", Call: history.Nobody}}})
			flat := strings.Join(strings.Fields(strings.ReplaceAll(text, "  >>  ", " ")), " ")
			if !strings.Contains(flat, test.want) {
				t.Errorf("%s at call %d: want %q in\n%s", name, call, test.want, text)
			}
		}
	}
}

// TestFailures proves that calls after a fault that fail are shown, however late they come; not those that find nothing.
// TestUnplaced proves that what hit no call is shown before the call that was made next, also if several were made at that moment.
func TestUnplaced(t *testing.T) {
	r := run("")
	for i := range r.Calls {
		r.Calls[i].At = r.Calls[0].At
	}
	r.Faults = []history.Fault{{Kind: "frozen", Call: history.Nobody, Next: 7, At: "create queue shop", Time: r.Calls[0].At}}
	text := report.Calls(r)
	_, after, _ := strings.Cut(text, "frozen: create queue shop\n")
	if !strings.HasPrefix(strings.TrimSpace(after), "7 ") || strings.Count(text, "frozen") != 1 {
		t.Errorf("want the process to stand still before call 7:\n%s", text)
	}
}

func TestFailures(t *testing.T) {
	r := run("crash-after")
	for n, i := range []int{20, 22, 24} {
		r.Calls[i] = history.Call{
			Index: i, At: r.Calls[i].At, Pass: 1, Verb: []string{"update", "get", "create"}[n], Resource: "queues", Name: "shop", Write: n != 1,
			Code: []int{409, 404, 500}[n], Err: []string{"conflict", "not found", "internal error"}[n],
		}
	}
	text := report.Text(report.Input{Run: r, Violations: []history.Violation{{Invariant: "I1", Call: history.Nobody}}})
	if !strings.Contains(text, "update queues shop") || !strings.Contains(text, "conflict") || !strings.Contains(text, "create queues shop") {
		t.Errorf("the conflict and the error are not shown:\n%s", text)
	}
	r.Calls[20].Err, r.Calls[24].Err = "", ""
	r.Calls[20].Changed, r.Calls[24].Changed = true, true
	text = report.Text(report.Input{Run: r, Violations: []history.Violation{{Invariant: "I1", Call: history.Nobody}}})
	if strings.Contains(text, "queues shop  not found") || strings.Contains(text, "update queues shop") {
		t.Errorf("calls that did not fail are shown:\n%s", text)
	}
}

// TestNoises proves that all that is written at rest is named.
func TestNoises(t *testing.T) {
	var found []history.Violation
	for i := range 12 {
		found = append(found, history.Violation{Invariant: "I5", Message: "it wrote " + strings.Repeat("x", i+1), Call: history.Nobody})
	}
	text := report.Text(report.Input{Run: run(""), Violations: found})
	if strings.Count(text, "it wrote") != 10 || !strings.Contains(text, "and 2 more") {
		t.Errorf("want ten of 12 writes to be named:\n%s", text)
	}
}

// TestReplayCommand proves that the command to replay can be pasted into a shell, wherever in
// the module that is.
func TestReplayCommand(t *testing.T) {
	tests := map[string]struct {
		why  string
		in   report.Input
		want string
	}{
		"folder": {
			"the package is not known, so it is the folder's",
			report.Input{Test: "TestQueue", Token: "v1/a/crash-after@4"},
			"go test -run '^TestQueue$' -fault.replay=v1/a/crash-after@4",
		},
		"package": {
			"the package comes before the flags, else go test takes it for the value of one",
			report.Input{Test: "TestQueue", Package: "example.com/op/internal/queue", Token: "v1/a/crash-after@4"},
			"go test example.com/op/internal/queue -run '^TestQueue$' -fault.replay=v1/a/crash-after@4",
		},
		"odd names": {
			"names of subtests are no patterns, and a quote does not end the word",
			report.Input{Test: "TestQueue/it's(a.b)", Package: "example.com/a~b", Token: "v1/it's (a.b)/race@4(1)"},
			`go test 'example.com/a~b' -run '^TestQueue$/^it'\''s\(a\.b\)$' -fault.replay='v1/it'\''s (a.b)/race@4(1)'`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.in.Violations = []history.Violation{{Invariant: "I1", Call: history.Nobody}}
			_, got, _ := strings.Cut(report.Text(tt.in), "\nreplay: ")
			if diff := cmp.Diff(tt.want, strings.TrimSpace(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s, accept with -update (-want +got):\n%s", file, diff)
	}
}

// TestPlaceOfADrift proves that a report shows a drift in the step that it ends, even if no call follows.
func TestPlaceOfADrift(t *testing.T) {
	t.Parallel()
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	drift := func(step, next int, at string) history.Fault {
		return history.Fault{Kind: "drift", Call: history.Nobody, Next: next, Step: step, Time: begin.Add(time.Minute), At: at}
	}
	got := report.Calls(&history.Run{
		Scenario: "places",
		Steps:    []history.Step{{Name: "start", At: begin}, {Name: "create", Call: 1}, {Name: "change", Call: 1}},
		Calls: []history.Call{
			{At: begin, Verb: "get", Resource: "parts", Pass: history.Nobody}, {Index: 1, At: begin, Verb: "get", Resource: "parts", Pass: history.Nobody},
		},
		Faults: []history.Fault{drift(0, 1, "first"), drift(1, 1, "second"), drift(2, 2, "third")},
	})
	var places []string
	for line := range strings.Lines(got) {
		if words := strings.Fields(line); words[0] == "step" || words[0] == ">>" {
			places = append(places, words[len(words)-1])
		}
	}
	if diff := cmp.Diff([]string{"start", "first", "create", "second", "change", "third"}, places); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
}
