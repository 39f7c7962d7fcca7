// Package audit counts requests to an API server by its audit log.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// Request is one request to the API server, as its audit log has it.
type Request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	User  struct {
		Name string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Group       string `json:"apiGroup"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// String returns the request in one line.
func (r Request) String() string {
	if r.Object.Resource == "" {
		return fmt.Sprintf("%s %s %d", r.Verb, r.URI, r.Response.Code)
	}
	what := r.Object.Resource
	if r.Object.Subresource != "" {
		what += "/" + r.Object.Subresource
	}
	return fmt.Sprintf("%s %s %s %d", r.Verb, what, r.Object.Name, r.Response.Code)
}

// Kind is what a request is for.
type Kind string

const (
	// Write changes an object, or attempts to.
	Write Kind = "write"
	// Read is a get or a list.
	Read Kind = "read"
	// Watch waits for changes: the only request that may go on all the time.
	Watch Kind = "watch"
	// Lease is leader election.
	Lease Kind = "lease"
	// Event is a Kubernetes event.
	Event Kind = "event"
	// Review asks what is permitted.
	Review Kind = "review"
)

// Kind returns what the request is for.
func (r Request) Kind() Kind {
	switch {
	case r.Object.Resource == "leases":
		return Lease
	case r.Object.Resource == "events":
		return Event
	case strings.HasSuffix(r.Object.Resource, "reviews"):
		return Review
	case r.Verb == "watch":
		return Watch
	case r.Verb == "get", r.Verb == "list":
		return Read
	}
	return Write
}

// Requests are requests in the order of their answers.
type Requests []Request

// Of returns the requests of the given kinds.
func (rs Requests) Of(kinds ...Kind) Requests {
	var out Requests
	for _, r := range rs {
		if slices.Contains(kinds, r.Kind()) {
			out = append(out, r)
		}
	}
	return out
}

// String returns each request in a line.
func (rs Requests) String() string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "\n  %s", r)
	}
	return b.String()
}

// Counts returns the number of requests of each kind as text.
func (rs Requests) Counts() string {
	var out []string
	for _, k := range []Kind{Write, Read, Watch, Lease, Event, Review} {
		out = append(out, fmt.Sprintf("%s %d", k, len(rs.Of(k))))
	}
	return strings.Join(out, ", ")
}

// Log reads an audit log while it grows.
type Log struct {
	file   *os.File
	rest   []byte // the beginning of a line
	all    Requests
	fences int
}

// Open opens the audit log at path until the test ends.
func Open(t testing.TB, path string) *Log {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &Log{file: f}
}

// catchUp reads what has been written since the last call.
func (l *Log) catchUp(t testing.TB) {
	t.Helper()
	more, err := io.ReadAll(l.file)
	if err != nil {
		t.Fatal(err)
	}
	l.rest = append(l.rest, more...)
	for {
		line, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return
		}
		l.rest = rest
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("audit log: %v in %s", err, line)
		}
		l.all = append(l.all, r)
	}
}

// Fence makes a request and returns the position of that request in the log. All requests that were
// answered before the call come before it.
func (l *Log) Fence(t testing.TB, c client.Client) int {
	t.Helper()
	l.fences++
	name := fmt.Sprintf("fence-%d", l.fences)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Fatal(errors.Join(errors.New("a fence requests an object that does not exist"), err))
	}
	deadline := time.After(poll.Patience)
	for {
		from := len(l.all)
		l.catchUp(t)
		for i, r := range l.all[from:] {
			if r.Object.Name == name {
				return from + i
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // a file cannot be watched
		case <-deadline:
			t.Fatal("the audit log lacks a request that was answered 10 s ago")
		}
	}
}

// Between returns the requests of a user between two fences. A watch is logged when it begins and
// when it ends; only the former counts.
func (l *Log) Between(from, to int, user string) Requests {
	var out Requests
	for _, r := range l.all[from:to] {
		if r.User.Name == user && (r.Verb != "watch" || r.Stage == "ResponseStarted") {
			out = append(out, r)
		}
	}
	return out
}
