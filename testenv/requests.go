package testenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Request is a request to the server and the status of its response.
type Request struct {
	// Verb is the verb of RBAC, except that a server-side apply, which RBAC calls patch, is
	// "apply". For a path that is not a resource, such as /readyz, it is the method in lower
	// case.
	Verb string
	// Path is the path of the URL.
	Path string
	// Group and Version are those of the API. The core group is empty.
	Group, Version string
	// Resource is the plural name, for example "configmaps". It is empty for other paths.
	Resource    string
	Subresource string
	Namespace   string
	// Name is empty for a list and for an object whose name the server generates.
	Name string
	// Body is the body of a write, as JSON. It is nil for other verbs.
	Body []byte
	// Code is the HTTP status, or 0 until the response arrives.
	Code int
}

// IsWrite reports whether the request was meant to change something. Reviews do not count: they are
// created but not stored.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create":
		return !strings.HasSuffix(r.Resource, "reviews")
	case "update", "patch", "apply", "delete", "deletecollection":
		return true
	}
	return false
}

// String returns the request on one line, for example "update streams/status a/orders 200".
func (r Request) String() string {
	what := r.Path
	if r.Resource != "" {
		what = r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		name := r.Name
		if r.Namespace != "" {
			name = r.Namespace + "/" + r.Name
		}
		if name != "" {
			what += " " + name
		}
	}
	return fmt.Sprintf("%s %s %d", r.Verb, what, r.Code)
}

// Log records the requests of clients in the order in which they were sent. A request is recorded
// before the server receives it, so that a test that sees its effect also finds it in the log. The
// zero value is an empty log. All methods are safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	all []*Request
}

// Requests returns a copy of cfg whose clients record each of their requests in the returned [Log].
// A watch is recorded when it begins.
func Requests(cfg *rest.Config) (*rest.Config, *Log) {
	log := &Log{}
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next: next, log: log} })
	return counted, log
}

// All returns the requests so far.
func (l *Log) All() []Request { return l.Select(func(Request) bool { return true }) }

// Select returns the requests so far for which fit returns true.
func (l *Log) Select(fits func(Request) bool) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Request
	for _, r := range l.all {
		if fits(*r) {
			found = append(found, *r)
		}
	}
	return found
}

// Writes returns the requests so far that were meant to change an object or one of its subresources,
// including refused ones. resource is the plural name.
func (l *Log) Writes(resource, namespace, name string) []Request {
	return l.Select(func(r Request) bool {
		return r.IsWrite() && r.Resource == resource && r.Namespace == namespace && r.Name == name
	})
}

// Reset empties the log.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

// String returns the requests so far, one per line.
func (l *Log) String() string {
	var b strings.Builder
	for _, r := range l.All() {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

func (l *Log) add(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
}

func (l *Log) answered(r *Request, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Code = code
}

// recorder is a transport that records requests.
type recorder struct {
	next http.RoundTripper
	log  *Log
}

// RoundTrip implements http.RoundTripper. It does not change the request.
func (c recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r := ParseRequest(req)
	if r.IsWrite() && req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.Body = asJSON(body)
	}
	if r.Name == "" && r.Verb == "create" {
		r.Name = nameIn(r.Body)
	}
	c.log.add(&r)
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		c.log.answered(&r, resp.StatusCode)
	}
	return resp, err
}

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (c recorder) WrappedRoundTripper() http.RoundTripper { return c.next }

// asJSON returns a body as JSON. Clients send the kinds of Kubernetes as protobuf; other kinds are
// sent as JSON anyway.
func asJSON(body []byte) []byte {
	if len(body) == 0 || json.Valid(body) {
		return body
	}
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return body
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return body
	}
	return text
}

func nameIn(body []byte) string {
	var obj metav1.PartialObjectMetadata
	if json.Unmarshal(body, &obj) != nil {
		return ""
	}
	return obj.Name
}

// ParseRequest derives a request's verb and resource from its method and URL. It leaves the body alone.
func ParseRequest(req *http.Request) Request {
	r := Request{Path: req.URL.Path, Verb: strings.ToLower(req.Method)}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		r.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		r.Group, r.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r
	}
	// A namespace is an object itself: its path is followed by its own subresources, or by
	// resources in it.
	own := []string{"status", "finalize"}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains(own, parts[2]) {
		r.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	r.Resource, r.Name, r.Subresource = parts[0], parts[1], parts[2]
	r.Verb = verb(req, r.Name)
	return r
}

// verb returns the verb that RBAC uses for the request.
func verb(req *http.Request, name string) string {
	watching := req.URL.Query().Get("watch")
	switch {
	case req.Method == http.MethodGet && (watching == "true" || watching == "1"):
		return "watch"
	case req.Method == http.MethodGet && name == "":
		return "list"
	case req.Method == http.MethodPost:
		return "create"
	case req.Method == http.MethodPut:
		return "update"
	case req.Method == http.MethodPatch && strings.Contains(req.Header.Get("Content-Type"), "apply-patch"):
		return "apply"
	case req.Method == http.MethodDelete && name == "":
		return "deletecollection"
	}
	return strings.ToLower(req.Method)
}
