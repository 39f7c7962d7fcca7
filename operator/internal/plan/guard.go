package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guard is a connection to an API server through which nothing is changed. Make one with newGuard.
type guard struct {
	log *log
	// base is what the paths of the API server begin with, behind a proxy.
	base string

	mu sync.Mutex
	// subject is the object of the pass, at path.
	path    string
	subject map[string]any
	// namespaces would have been created by the pass.
	namespaces map[string]bool
}

// newGuard returns a guard that notes writes in l.
func newGuard(l *log) *guard { return &guard{log: l, namespaces: map[string]bool{}} }

// wrap puts the guard in front of a connection.
func (g *guard) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return g.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hold makes the guard answer for the object at path from a copy.
func (g *guard) hold(path string, object map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.path, g.subject = path, decode(encode(object)) // numbers as the answers have them
}

// roundTrip answers a request.
func (g *guard) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	t, isResource := parse(strings.TrimPrefix(r.URL.Path, g.base))
	if r.Header.Get("Upgrade") != "" || slices.Contains([]string{"exec", "attach", "portforward"}, t.subresource) {
		return refuse(r, "a plan opens no connection to a Pod: "+r.Method+" "+r.URL.Path), nil
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if answer := g.read(t, r); answer != nil {
			return answer, nil
		}
		return next.RoundTrip(r)
	}
	if !isResource || !slices.Contains(methodsOfWrites(t.subresource), r.Method) {
		return refuse(r, "a plan sends no "+r.Method+" "+r.URL.Path+": the API server offers no dry run of it"), nil
	}
	if t.asks() {
		return next.RoundTrip(r)
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if t.isEvent() {
		return respond(r, http.StatusCreated, body), nil
	}
	if g.holds(t) {
		return g.write(t, r, body)
	}
	return g.dryRun(next, t, r, body)
}

// methodsOfWrites are the methods that a dry run exists of.
func methodsOfWrites(subresource string) []string {
	switch subresource {
	case "":
		return []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	case "status", "scale", "ephemeralcontainers", "resize", "approval", "finalize":
		return []string{http.MethodPut, http.MethodPatch}
	case "eviction", "binding":
		return []string{http.MethodPost}
	}
	return nil
}

// dryRun sends a write as a dry run and notes what it would do.
func (g *guard) dryRun(next http.RoundTripper, t target, r *http.Request, body []byte) (*http.Response, error) {
	before := g.before(next, t, r)
	sent, err := asDryRun(r, body)
	if err != nil {
		return refuse(r, err.Error()), nil
	}
	answer, err := next.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	said, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer to a dry run: %w", err)
	}
	code := answer.StatusCode
	if code >= http.StatusBadRequest && t.isSecret() {
		said = withoutWords(said)
	}
	if code == http.StatusNotFound && g.createsNamespace(t.namespace) && before == nil && r.Method != http.MethodDelete {
		code, said = http.StatusCreated, body // the namespace would exist by then
		answer.StatusCode, answer.Status = code, http.StatusText(code)
	}
	if code < 300 && t.resource == "namespaces" && before == nil {
		g.note(t, body)
	}
	if code != http.StatusConflict { // the pass reads the object, and writes it again
		g.log.add(stepOf(t, r, before, body, said, code))
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(said)), int64(len(said))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// note notes that a namespace would have been created.
func (g *guard) note(t target, body []byte) {
	name := t.name
	if o := decode(body); name == "" && o != nil {
		name = nameOf(o)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.namespaces[name] = true
}

func (g *guard) createsNamespace(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return name != "" && g.namespaces[name]
}

// before reads the object that a write is about; nil if there is none.
func (g *guard) before(next http.RoundTripper, t target, r *http.Request) map[string]any {
	if t.name == "" {
		return nil
	}
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength, get.GetBody = http.MethodGet, nil, 0, nil
	get.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path}
	get.Header.Del("Content-Type")
	get.Header.Del("Content-Length")
	get.Header.Set("Accept", "application/json")
	answer, err := next.RoundTrip(get)
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil
	}
	return decode(said)
}

// asDryRun returns a write as a dry run.
func asDryRun(r *http.Request, body []byte) (*http.Request, error) {
	sent := r.Clone(r.Context())
	query := sent.URL.Query()
	query.Set("dryRun", metav1.DryRunAll)
	sent.URL.RawQuery = query.Encode()
	sent.Header.Set("Accept", "application/json") // whole objects, also for who asks for their metadata
	if r.Method == http.MethodDelete {            // the API server ignores the query if there is a body
		options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1"}
		if len(body) > 0 {
			if options = decode(body); options == nil {
				return nil, fmt.Errorf("a plan cannot make %s %s a dry run: its options are no JSON", r.Method, r.URL.Path)
			}
		}
		options["dryRun"] = []any{metav1.DryRunAll}
		var err error
		if body, err = json.Marshal(options); err != nil {
			return nil, err
		}
		sent.Header.Set("Content-Type", "application/json")
	}
	sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return sent, nil
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read a request: %w", err)
	}
	return body, nil
}

// target is what a request is about.
type target struct {
	path                                          string // of the object, without its subresource
	group, resource, namespace, name, subresource string
}

// parse returns what a request to a path is about; ok is false if that is no resource.
func parse(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.group, parts = parts[1], parts[3:]
	default:
		return t, false
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	t.path = strings.TrimSuffix(path, "/"+t.subresource)
	return t, true
}

// asks reports whether a request is a question that changes nothing: about permissions, or who somebody is.
func (t target) asks() bool {
	return strings.HasSuffix(t.resource, "reviews") && (t.group == "authorization.k8s.io" || t.group == "authentication.k8s.io")
}

func (t target) isSecret() bool { return t.resource == "secrets" && t.group == "" }

// withoutWords replaces the message of an answer, which may quote what is in a Secret.
func withoutWords(said []byte) []byte {
	status := decode(said)
	if status == nil {
		return nil
	}
	reason, _ := status["reason"].(string)
	status["message"] = "the API server refuses the Secret (" + reason + "); its words may quote values and are not shown"
	delete(status, "details")
	return encode(status)
}

func (t target) isEvent() bool {
	return t.resource == "events" && (t.group == "" || t.group == "events.k8s.io")
}

func refuse(r *http.Request, why string) *http.Response {
	return failed(r, http.StatusForbidden, metav1.StatusReasonForbidden, why)
}

func failed(r *http.Request, code int, reason metav1.StatusReason, why string) *http.Response {
	text, _ := json.Marshal(metav1.Status{ // has no type that could fail
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: why, Reason: reason, Code: int32(code),
	})
	return respond(r, code, text)
}

func respond(r *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
