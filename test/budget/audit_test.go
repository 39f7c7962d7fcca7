package budget

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
)

// request is one request to the API server, as its audit log has it.
type request struct {
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

// String is the request in one line.
func (r request) String() string {
	if r.Object.Resource == "" {
		return fmt.Sprintf("%s %s %d", r.Verb, r.URI, r.Response.Code)
	}
	what := r.Object.Resource
	if r.Object.Subresource != "" {
		what += "/" + r.Object.Subresource
	}
	return fmt.Sprintf("%s %s %s %d", r.Verb, what, r.Object.Name, r.Response.Code)
}

// kind is what a request is for.
type kind string

const (
	// write changes an object, or means to.
	write kind = "write"
	// read is a get or a list.
	read kind = "read"
	// watch waits for news: the one request that may go on all the time.
	watch kind = "watch"
	// lease is leader election.
	lease kind = "lease"
	// announcement is a Kubernetes event.
	announcement kind = "event"
	// review asks what is permitted.
	review kind = "review"
)

func (r request) kind() kind {
	switch {
	case r.Object.Resource == "leases":
		return lease
	case r.Object.Resource == "events":
		return announcement
	case strings.HasSuffix(r.Object.Resource, "reviews"):
		return review
	case r.Verb == "watch":
		return watch
	case r.Verb == "get", r.Verb == "list":
		return read
	}
	return write
}

// requests are some, in the order of their answers.
type requests []request

// of picks those of some kinds.
func (rs requests) of(kinds ...kind) requests {
	var out requests
	for _, r := range rs {
		if slices.Contains(kinds, r.kind()) {
			out = append(out, r)
		}
	}
	return out
}

// String is one request in a line.
func (rs requests) String() string {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "\n  %s", r)
	}
	return b.String()
}

// counts is how many there are of each kind, for people.
func (rs requests) counts() string {
	var out []string
	for _, k := range []kind{write, read, watch, lease, announcement, review} {
		out = append(out, fmt.Sprintf("%s %d", k, len(rs.of(k))))
	}
	return strings.Join(out, ", ")
}

// audit reads the audit log as it grows.
type audit struct {
	file   *os.File
	rest   []byte // the beginning of a line
	all    requests
	fences int
}

func openAudit(t *testing.T, path string) *audit {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &audit{file: f}
}

// catchUp takes in what was written since.
func (a *audit) catchUp(t *testing.T) {
	t.Helper()
	more, err := io.ReadAll(a.file)
	if err != nil {
		t.Fatal(err)
	}
	a.rest = append(a.rest, more...)
	for {
		line, rest, complete := bytes.Cut(a.rest, []byte("\n"))
		if !complete {
			return
		}
		a.rest = rest
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("audit log: %v in %s", err, line)
		}
		a.all = append(a.all, r)
	}
}

// fence makes a request and returns how many the log holds up to it: whatever was answered
// before is among them.
func (a *audit) fence(t *testing.T, c client.Client) int {
	t.Helper()
	a.fences++
	name := fmt.Sprintf("fence-%d", a.fences)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Fatal(errors.Join(errors.New("a fence is a request for something that does not exist"), err))
	}
	deadline := time.After(10 * time.Second)
	for {
		from := len(a.all)
		a.catchUp(t)
		for i, r := range a.all[from:] {
			if r.Object.Name == name {
				return from + i
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // a file has nothing to wait on
		case <-deadline:
			t.Fatal("the audit log lacks a request that was answered 10 s ago")
		}
	}
}

// between returns what a user asked between two fences. A watch is logged when it begins and
// when it ends; only the former counts.
func (a *audit) between(from, to int, user string) requests {
	var out requests
	for _, r := range a.all[from:to] {
		if r.User.Name == user && (r.Verb != "watch" || r.Stage == "ResponseStarted") {
			out = append(out, r)
		}
	}
	return out
}
