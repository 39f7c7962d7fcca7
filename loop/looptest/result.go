package looptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// Result is what came of a pass.
type Result struct {
	// Name is the object's, with its namespace.
	Name string
	// Outcome is that of [trace.End]. It is empty if the pass was postponed, there was no object, or the controller has a
	// trace of its own.
	Outcome string
	// Err is the error that controller-runtime got, and counts.
	Err error
	// Trace is what the pass recorded, for [trace.Transcript]. It is empty if Outcome is.
	Trace []trace.Record
	// Attempt is which retry the pass was.
	Attempt int
	// Writes are the writes in order, one a line, such as `apply probes/status n/a {"status":{"state":"Succeeded"}}`. A
	// refused one ends in its HTTP status.
	Writes []string
	// Events are those recorded, such as "Warning Failed the disk is full".
	Events []string
	// Object is the object afterwards; nil if it is gone. State, Message and Conditions are those of its status. A
	// condition is a line such as "Ready True Succeeded the object matches its spec"; they are sorted.
	Object         client.Object
	State, Message string
	Conditions     []string
	// Next is after how long the next pass is due, if Again. If not, only an event leads to one.
	Next  time.Duration
	Again bool
}

// String returns the result as a transcript.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pass over %s: %s\n", r.Name, r.Outcome)
	for _, part := range []struct {
		name  string
		lines []string
	}{{"write", r.Writes}, {"event", r.Events}, {"condition", r.Conditions}} {
		for _, line := range part.lines {
			fmt.Fprintln(&b, part.name, line)
		}
	}
	if r.Again {
		fmt.Fprintln(&b, "next in", r.Next)
	}
	return b.String()
}

// writeLine returns a write on one line, without what the line says already and what differs in each run.
func writeLine(w testenv.Request) string {
	line := strings.TrimSuffix(w.String(), fmt.Sprintf(" %d", w.Code))
	var body any
	if json.Unmarshal(w.Body, &body) == nil && w.Verb != "delete" {
		if object, is := body.(map[string]any); is {
			strip(object)
		}
		if text, err := json.Marshal(body); err == nil {
			line += " " + string(text)
		}
	}
	if w.Code == 0 {
		return line + " no answer"
	}
	if w.Code >= http.StatusBadRequest {
		return fmt.Sprintf("%s %d", line, w.Code)
	}
	return line
}

func strip(object map[string]any) {
	delete(object, "apiVersion")
	delete(object, "kind")
	if m, is := object["metadata"].(map[string]any); is {
		for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
			delete(m, key)
		}
		if len(m) == 0 {
			delete(object, "metadata")
		}
	}
	if status, is := object["status"].(map[string]any); is {
		list, _ := status["conditions"].([]any)
		for _, item := range list {
			if c, is := item.(map[string]any); is {
				delete(c, "lastTransitionTime")
			}
		}
	}
}
