package invariant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/invariant"
)

// orderly is a status of a kind with state and message that is as it should be.
func orderly(generation int) string {
	return `state: Succeeded, message: "queue is as asked for", ` + strings.Replace(readyAt(generation), "reason: Available", `reason: Available, message: "queue is as asked for"`, 1)
}

// problem adds to a status a condition that is True, with a message.
func problem(status, kind, reason, message string) string {
	return strings.TrimSuffix(status, "]") + fmt.Sprintf(`, {type: %s, status: "True", reason: %s, message: "%s", lastTransitionTime: t1}]`, kind, reason, message)
}

// says gives a status its state and message.
func says(state, message, status string) string {
	return fmt.Sprintf(`state: %s, message: "%s", `, state, message) + strings.TrimPrefix(status, `state: Succeeded, message: "queue is as asked for", `)
}

// Each misreport is found by this invariant alone, and what looks like it and is right is not.
func TestPresent(t *testing.T) {
	tells := both(
		on("ready", put("operator", shop, database(1, mark, orderly(1)))), on("user resizes", put("user", shop, database(2, mark, orderly(1)))),
		on("ready again", put("operator", shop, database(2, mark, orderly(2)))), on("user deletes", put("user", shop, strings.Replace(deleting(mark), readyAt(2), orderly(2), 1))),
	)
	const away = "cannot observe queue: connection refused; retrying"
	// passing is a status that is written, and then the one in order again.
	passing := func(status string) func(*story) {
		return both(tells, add("created", func(s *story) {
			s.fault("failed")
			s.begin("default/shop")
			s.put("operator", shop, database(1, mark, status))
			s.end("")
			s.begin("default/shop")
			s.put("operator", shop, database(1, mark, orderly(1)))
			s.end("")
		}))
	}
	event := func(kind, reason, note string) func(*story) {
		return func(s *story) {
			s.put("operator", fmt.Sprintf("events.events.k8s.io default/shop.%d", s.rev), fmt.Sprintf(`{type: %s, reason: %s, note: "%s"}`, kind, reason, note))
		}
	}
	failing := says("Failed", away, problem(orderly(1), "Reconciling", "ObserveFailed", away))
	judge(t, map[string]tale{
		"in order":   {why: "it says so", usual: tells, run: tells},
		"in trouble": {why: "it works, as far as anybody knows, and the problem is told", usual: tells, run: passing(failing)},
		"both": {
			why: "it cannot both go on by itself and not", usual: tells, want: []string{"I19: says both Reconciling=True and Stalled=True"},
			run: passing(problem(failing, "Stalled", "Refused", away)),
		},
		"stalled and ready": {
			why: "the spec cannot be reached and is", usual: tells, want: []string{"I19: says Stalled=True beside Ready=True for its present generation 1"},
			run: passing(says("Failed", away, problem(orderly(1), "Stalled", "Refused", away))),
		},
		"stalled and ready for the spec before": {
			why: "what there is works, and the new spec is refused", usual: tells,
			run: both(tells, first("update", func(s *story) {
				s.fault("failed")
				s.put("operator", shop, database(2, mark, says("Failed", "too large", problem(orderly(1), "Stalled", "Refused", "too large"))))
			})),
		},
		"in the words of Ready": {
			why: "the reason of a success stands on a failure", usual: tells, want: []string{"I19: condition Reconciling=True of databases.demo.dev default/shop has the reason Available"},
			run: passing(problem(readyAt(1), "Reconciling", "Available", "")),
		},
		"the message of Ready": {
			why: "the same for the message", usual: tells, want: []string{`I19: the message "works" of Ready=True`},
			run: passing(problem(strings.Replace(readyAt(1), "reason: Available", "reason: Available, message: works", 1), "Stalled", "Refused", "works") + ", x: y"),
		},
		"failed as asked for": {
			why: "the message is that of an object in order", usual: tells, want: []string{`I19: has the state Failed and the message "queue is as asked for"`},
			run: passing(says("Failed", "queue is as asked for", orderly(1))),
		},
		"a failure in words of success": {
			why: "the condition tells no failure", usual: tells, want: []string{`I19: condition Failed=True of databases.demo.dev default/shop has the message "queue is as asked for"`},
			run: passing(problem(says("Failed", away, orderly(1)), "Failed", "ObserveFailed", "queue is as asked for")),
		},
		"another message": {
			why: "two sentences for one problem", usual: tells, want: []string{`I19: status.message of databases.demo.dev default/shop is "something"`},
			run: passing(says("Failed", "something", problem(orderly(1), "Reconciling", "ObserveFailed", away))),
		},
		"no UTF-8": {
			why: "what the vendor sent was put in as it came", usual: tells, want: []string{"I19: which was no UTF-8"},
			run: passing(problem(readyAt(1), "Failed", "ObserveFailed", "caf\uFFFD")),
		},
		"control characters": {
			why: "a terminal obeys them", usual: tells, want: []string{"I19: with control characters"},
			run: passing(problem(readyAt(1), "Failed", "ObserveFailed", `\x1b[2J`)),
		},
		"too long": {
			why: "nobody reads that", usual: tells, want: []string{"I19: the message of condition Failed of databases.demo.dev default/shop has 1025 bytes"},
			run: passing(problem(says("Failed", away, orderly(1)), "Failed", "ObserveFailed", strings.Repeat("x", 1025))),
		},
		"events of two types": {
			why: "an alert on warnings sees it once in a while", want: []string{`I19: event CreateFailed, "away", was of type Warning and is of type Normal now`},
			run: add("created", both(event("Warning", "CreateFailed", "away"), event("Normal", "CreateFailed", "away"))),
		},
		"events of two failures": {why: "they say something else", run: add("created", both(event("Warning", "CreateFailed", "away"), event("Normal", "Created", "away"), event("Normal", "CreateFailed", "late")))},
		"event without UTF-8":    {why: "it came from the vendor", want: []string{"I19: the note of an event CreateFailed"}, run: add("created", event("Warning", "CreateFailed", "caf\uFFFD"))},
	})
}

// An object that is as it should be, at rest and undisturbed, says so: the other half of I8.
func TestModesty(t *testing.T) {
	modest := func(status string) func(*story) {
		return both(on("ready", put("operator", shop, database(1, mark, status))), on("user resizes", put("user", shop, database(2, mark, status))))
	}
	no := func(message string) string {
		return strings.Replace(notReady(1), "reason: Failing", `reason: Failing, message: "`+message+`"`, 1)
	}
	unready := problem(no("away"), "Reconciling", "Failing", "away")
	for name, tt := range map[string]tale{
		"ready": {why: "it says so"},
		"not ready": {
			why: "one condition cannot say more", run: modest(no("away")),
		},
		"succeeded": {
			why: "whoever waits for it waits for ever", run: modest("state: Succeeded, " + no("queue is as asked for")), want: []string{"I8: is at rest with Ready=False, but its state is Succeeded"},
		},
		"in the words of an object in order": {
			why:  "the same without a state",
			run:  both(modest(no("works")), on("ready again", put("operator", shop, database(2, mark, strings.Replace(readyAt(2), "reason: Available", "reason: Available, message: works", 1))))),
			want: []string{`I8: is at rest with Ready=False, but its message is "works", as when it is`},
		},
		"says why": {why: "it works on it", run: modest(unready)},
		"used to say why": {
			why: "it tells of work and stuckness elsewhere, and here of neither", run: both(modest(no("away")), first("ready", put("operator", shop, database(1, mark, unready)))),
			want: []string{"I8: it says neither Reconciling nor Stalled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			if tt.run != nil {
				tt.run(s)
			}
			r := s.live()
			found := invariant.Against(r)(r)
			if len(found) != len(tt.want) {
				t.Fatalf("%s: want %v, found\n%s", tt.why, tt.want, tell(found))
			}
			for i, want := range tt.want {
				id, text, _ := strings.Cut(want, ": ")
				if found[i].Invariant != id || !strings.Contains(found[i].Message, text) {
					t.Errorf("%s: want %s, found\n%s", tt.why, want, tell(found))
				}
			}
		})
	}
}

// What is done at the external API because somebody wrote a status is found (I19), and a status that somebody
// wrote excuses what the operator has to write over it.
func TestCredulity(t *testing.T) {
	forged := func(more func(*story)) func(*story) {
		return first("update", func(s *story) {
			s.fault("forged")
			s.put("user", shop, database(2, mark, strings.Replace(readyAt(2), "t1", "t9", 1)))
			more(s)
		})
	}
	judge(t, map[string]tale{
		"written over": {why: "the operator goes on from what it knew: generation 1, with its own time", run: forged(put("operator", shop, database(2, mark, readyAt(1))))},
		"believed": {
			why: "it did something that it does not do otherwise", want: []string{"I19: \"write outside\" was called because a user had written a status"},
			run: forged(func(s *story) { s.external("operator", s.queue("q-1", 2)); s.external("operator", s.queue("q-1", 1)) }),
		},
		"looked up": {
			why: "who wrote a status only the API server says, once for each version",
			run: both(forged(put("operator", shop, database(2, mark, readyAt(1)))), on("silence", lookUp(1))),
		},
		"looked up again": {
			why: "nothing has changed since", want: []string{"I5: read objects from the API server, past its caches, once"},
			run: both(forged(put("operator", shop, database(2, mark, readyAt(1)))), on("silence", lookUp(2))),
		},
		"looked up without a forgery": {
			why: "nobody wrote what was not to be there", want: []string{"I5: read objects from the API server, past its caches, once"},
			run: on("silence", lookUp(1)),
		},
		"the same without a forgery": {
			why: "other faults make an operator repeat calls",
			run: first("update", func(s *story) {
				s.fault("failed")
				s.external("operator", s.queue("q-1", 2))
				s.external("operator", s.queue("q-1", 1))
			}),
		},
	})
}

// lookUp reads the shop past the cache, in each of n passes of another object.
func lookUp(n int) func(*story) {
	return func(s *story) {
		for range n {
			s.begin("default/dependent")
			s.call(history.Call{Verb: "get", Group: "demo.dev", Resource: "databases", Namespace: "default", Name: "shop"})
			s.end("")
		}
	}
}

// What is secret is found wherever it does not belong, once, and nowhere else (I14).
func TestSpilled(t *testing.T) {
	declared := func(s *story) { s.run.Secrets = []string{"hunter2"} }
	judge(t, map[string]tale{
		"in a Secret": {why: "that is what they are for", run: both(declared, add("created", put("operator", "secrets default/shop", "{metadata: {labels: {database: shop}}, stringData: {password: hunter2}}"))), want: []string{"I1: create"}},
		"in status": {
			why: "the vendor's error quotes it", want: []string{"I14: in status.conditions[0].message of databases default/shop"},
			run: both(declared, first("ready", put("operator", shop, database(1, mark, strings.Replace(notReady(1), "reason: Failing", "reason: Failing, message: 'postgres://a:hunter2@db'", 1)))), first("ready", func(s *story) {
				s.put("operator", shop, database(1, mark, strings.Replace(notReady(1), "reason: Failing", "reason: Failing, message: 'postgres://a:hunter2@db'", 1)))
			})),
		},
		"in an event":      {why: "whoever may read events may read it", run: both(declared, add("created", put("operator", "events.events.k8s.io default/a", "{note: hunter2}"))), want: []string{"I14: in note of events default/a"}},
		"by a user":        {why: "it is the user's to tell", run: both(declared, add("created", put("user", "events.events.k8s.io default/a", "{note: hunter2}")))},
		"without a secret": {why: "nobody said that it is one", run: add("created", put("operator", "events.events.k8s.io default/a", "{note: hunter2}"))},
	})
}
