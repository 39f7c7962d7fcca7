package decide

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rowTitles say what each row of the table is about.
func rowTitles() [33]string {
	return [33]string{
		0:  "The resource is observed before anything is decided about it",
		1:  "The object is paused: nothing is changed, and what is observed is reported",
		2:  "The external API cannot be called",
		3:  "The external API asks for fewer calls",
		4:  "Something that is needed is missing, and nothing was created yet",
		5:  "Something that is needed is missing, and the resource exists",
		6:  "The external system is working on the resource",
		7:  "An operation takes longer than it may",
		8:  "A create may have been called: find out what it made",
		9:  "The resource is found by its mark, or gets the mark of this object",
		10: "The record cannot be used",
		11: "The resource is not visible, which proves nothing yet",
		12: "The resource does not exist, and may not be created",
		13: "The resource does not exist: create it, after its record is durable",
		14: "The resource was lost: create it again",
		15: "The resource is not ours",
		16: "The connection details that users see are not up to date",
		17: "The resource matches the spec",
		18: "The resource differs: update it",
		19: "The resource differs, and may not be updated",
		20: "Changes are accepted but leave the difference",
		21: "The resource differs: delete it and create it again",
		22: "The resource would have to be created again, which is not permitted",
		23: "No call can make the change",
		24: "The resource is being deleted although its object is not",
		25: "A call or the resource has failed",
		26: "The object is deleted and the resource stays",
		27: "The object is deleted, and nothing was ever created for it",
		28: "The object is being deleted, and it is uncertain what was created for it",
		29: "The object is being deleted: delete the resource",
		30: "The object is deleted, because the resource does not exist or is not ours",
		31: "The object is being deleted, and the resource cannot be deleted now",
		32: "It is unknown whether a change took effect: observe",
	}
}

const decisionsPreface = `# Decisions

A pure function, [` + "`decide.Next`" + `](../external/internal/decide/decide.go), decides what trimtab does next about an
external resource. It is a table of 32 rows and an initial observation. Traces name the row, as in ` + "`D-13`" + `.
This page explains each row by examples.

**Action** is what the engine does now: a call of the driver, a write to Kubernetes, ` + "`wait`" + `, or ` + "`stop`" + ` until
something changes. **State, reason** are what the status says meanwhile; ` + "`same`" + ` keeps the state. **Conditions**
become True (+) or False (-). **Next pass** is its trigger, if there is nothing left to do now:

| Next pass | Due |
|---|---|
| event | when the object or something that it refers to changes |
| backoff | after a delay that grows exponentially with each failure |
| poll | after the time that the API suggests, or 1 s, growing to 30 s |
| soon | after 1 s, growing to 10 s |
| drift | after the drift interval |
| scope | when the external API can be called again |
| dependency | when a dependency changes |
| grace | when reads of the external API can no longer be stale |

A test writes this page from the table that it checks.
`

// TestDecisions checks that docs/decisions.md is the table that TestNext checks.
func TestDecisions(t *testing.T) {
	const file = "../../../docs/decisions.md"
	var b strings.Builder
	b.WriteString(decisionsPreface)
	examples := table()
	for row, title := range rowTitles() {
		fmt.Fprintf(&b, "\n## %s %s\n\n| Situation | Why | Action | State, reason | Conditions | Next pass |\n|---|---|---|---|---|---|\n", Row(row), title)
		n := 0
		for _, name := range slices.Sorted(maps.Keys(examples)) {
			e := examples[name]
			decided, found := strings.CutPrefix(e.want, Row(row).String()+" ")
			if !found {
				continue
			}
			n++
			_, situation, _ := strings.Cut(name, " ")
			fmt.Fprintf(&b, "| %s | %s | %s |\n", situation, e.why, strings.Join(columns(decided), " | "))
		}
		if n == 0 {
			t.Errorf("%s has no example", Row(row))
		}
	}
	compareWithFile(t, file, b.String(), "TestDecisions")
}

// columns splits a decision, as in "wait Verifying Degraded -Ready -Creating poll", into action, state
// and reason, conditions, and what triggers the next pass. Actions and triggers are in lower case.
func columns(decided string) []string {
	words := strings.Fields(decided)
	isLower := func(w string) bool { return w != "same" && w[0] >= 'a' && w[0] <= 'z' }
	isShown := func(w string) bool { return w[0] == '+' || w[0] == '-' }
	upTo := func(end func(string) bool) string {
		n := slices.IndexFunc(words, end)
		if n < 0 {
			n = len(words)
		}
		part := strings.Join(words[:n], " ")
		words = words[n:]
		return part
	}
	action := upTo(func(w string) bool { return !isLower(w) })
	reason := upTo(func(w string) bool { return isShown(w) || isLower(w) })
	shown := upTo(func(w string) bool { return !isShown(w) })
	return []string{action, reason, shown, strings.Join(words, " ")}
}

// compareWithFile fails the test if a page differs from what would be written now.
func compareWithFile(t *testing.T, file, now, test string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(was), now); diff != "" {
		t.Errorf("%s is out of date (-file +now); accept with go test ./external/internal/decide -run '^%s$' -update\n%s", file, test, diff)
	}
}
