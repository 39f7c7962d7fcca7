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

// Request is one request that reached the server and its answer's status.
type Request struct {
	// Verb is as in RBAC, and "apply" for a server-side apply, which RBAC calls patch. For
	// a path that is not a resource, such as /readyz, it is the method in lower case.
	Verb string
	// Path is the path of the URL.
	Path string
	// Group and Version are the API's. The group of Kubernetes' core is empty.
	Group, Version string
	// Resource is the plural, for example "configmaps"; empty for other paths.
	Resource    string
	Subresource string
	Namespace   string
	// Name is empty for a list and for an object whose name the server makes.
	Name string
	// Body is what was written, as JSON; nil for other verbs.
	Body []byte
	// Code is the HTTP status; 0 while no answer has come.
	Code int
}

// IsWrite tells whether the request meant to change something. Reviews, which are asked by
// creating an object that is not kept, change nothing.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create":
		return !strings.HasSuffix(r.Resource, "reviews")
	case "update", "patch", "apply", "delete", "deletecollection":
		return true
	}
	return false
}

// String is the request in one line, for example "update streams/status a/orders 200".
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

// Log holds what clients asked of the server, in the order in which they asked. A request
// is in it before the server gets it, so that whoever sees its effect finds it here. The
// zero value is empty and ready; methods may be called while clients are at work.
type Log struct {
	mu  sync.Mutex
	all []*Request
}

// Requests answers a copy of cfg whose clients write each of their requests into a new
// [Log]. A watch counts when it begins.
func Requests(cfg *rest.Config) (*rest.Config, *Log) {
	log := &Log{}
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next: next, log: log} })
	return counted, log
}

// All answers the requests so far.
func (l *Log) All() []Request { return l.Select(func(Request) bool { return true }) }

// Select answers the requests so far that fit.
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

// Writes answers the requests so far that meant to change one object or a subresource of
// it, refused ones too. resource is the plural.
func (l *Log) Writes(resource, namespace, name string) []Request {
	return l.Select(func(r Request) bool {
		return r.IsWrite() && r.Resource == resource && r.Namespace == namespace && r.Name == name
	})
}

// Reset forgets the requests so far.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

// String is the requests so far, one in a line.
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

// recorder is a transport that notes what passes through it.
type recorder struct {
	next http.RoundTripper
	log  *Log
}

// RoundTrip passes the request on unchanged.
func (c recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r := parse(req)
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

// WrappedRoundTripper lets client-go reach the transport below.
func (c recorder) WrappedRoundTripper() http.RoundTripper { return c.next }

// asJSON makes a body legible. Clients send Kubernetes' own kinds as protobuf, and kinds
// that are not known here as JSON already.
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

// parse reads a request's meaning from its method and URL.
func parse(req *http.Request) Request {
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
	// A namespace is an object too: below it are its own subresources, or resources.
	own := []string{"status", "finalize"}
	if parts[0] == "namespaces" && len(parts) > 2 && !slices.Contains(own, parts[2]) {
		r.Namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	r.Resource, r.Name, r.Subresource = parts[0], parts[1], parts[2]
	r.Verb = verb(req, r.Name)
	return r
}

// verb is what RBAC calls the request.
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
