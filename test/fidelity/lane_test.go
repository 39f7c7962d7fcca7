//go:build !race

package fidelity

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// patience is for what a server does by itself: tell watches, collect garbage.
const patience = poll.Patience

// lane is a namespace on one server in which sequences are played one after the other. Its
// watches stay open; what they show is kept per sequence.
type lane struct {
	name string // of the server, for messages
	base *url.URL
	http *http.Client
	ns   string
	// collect lets garbage be collected; nil means that it is without being asked.
	collect func(context.Context) error
	// order sets the order in which garbage is collected; nil means that it is as it comes.
	order func(seed, try uint64)

	mu      sync.Mutex
	changed *sync.Cond
	live    map[ref]object
	ended   map[ref]int64 // the last revision of those that are gone
	events  []event
	broken  error
	probes  int // sentinels made
}

// ref names an object of a lane.
type ref struct{ resource, name string }

func (r ref) String() string { return r.resource + "/" + r.name }

// event is one that a watch showed.
type event struct {
	ref  ref
	kind string
	rev  int64
	now  object
	raw  json.RawMessage
}

// object is what garbage collection and the end of a sequence need of one.
type object struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
}

type metadata struct {
	Name              string   `json:"name"`
	UID               string   `json:"uid"`
	ResourceVersion   string   `json:"resourceVersion"`
	DeletionTimestamp string   `json:"deletionTimestamp"`
	Finalizers        []string `json:"finalizers"`
	OwnerReferences   []struct {
		UID                string `json:"uid"`
		BlockOwnerDeletion bool   `json:"blockOwnerDeletion"`
	} `json:"ownerReferences"`
}

func (o object) rev() int64 {
	rev, _ := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64) // absent: 0
	return rev
}

// newLane makes a namespace and opens its watches.
func newLane(t testing.TB, name string, cfg *rest.Config, ns string) *lane {
	t.Helper()
	l := &lane{name: name, ns: ns, live: map[ref]object{}, ended: map[ref]int64{}}
	l.changed = sync.NewCond(&l.mu)
	var err error
	if l.http, err = rest.HTTPClientFor(cfg); err != nil {
		t.Fatal(err)
	}
	if l.base, _, err = rest.DefaultServerUrlFor(cfg); err != nil {
		t.Fatal(err)
	}
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + ns + `"}}`
	a, err := l.ask(t.Context(), http.MethodPost, "/api/v1/namespaces", nil, jsonType, []byte(body))
	if err != nil || a.Code != http.StatusCreated {
		t.Fatalf("%s: create namespace %q: %v %d %s", name, ns, err, a.Code, a.Body)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var watches sync.WaitGroup
	t.Cleanup(func() {
		stop()
		watches.Wait()
	})
	for _, k := range kinds() {
		body, err := l.open(ctx, k)
		if err != nil {
			t.Fatalf("%s: watch %s: %v", name, k.resource, err)
		}
		watches.Go(func() { l.follow(ctx, k, body) })
	}
	return l
}

// open begins a watch of all objects of a kind in the lane.
func (l *lane) open(ctx context.Context, k kind) (io.ReadCloser, error) {
	q := url.Values{"watch": {"true"}, "timeoutSeconds": {"36000"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url(l.path(k, "", "", ""), q), nil)
	if err != nil {
		return nil, err
	}
	resp, err := l.http.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("%s: %s", resp.Status, b)
	}
	return resp.Body, nil
}

// follow takes a watch's events until the lane ends.
func (l *lane) follow(ctx context.Context, k kind, body io.ReadCloser) {
	defer body.Close()
	d := json.NewDecoder(body)
	for {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		err := d.Decode(&e)
		var o object
		if err == nil {
			err = json.Unmarshal(e.Object, &o)
		}
		if err == nil && o.Kind != k.kind {
			err = fmt.Errorf("got %s %s", e.Type, e.Object)
		}
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		if err != nil {
			l.broken = fmt.Errorf("%s: watch of %s: %w", l.name, k.resource, err)
		} else if l.ours(k, o.Metadata.Name) {
			l.take(ref{k.resource, o.Metadata.Name}, e.Type, o, e.Object)
		}
		l.changed.Broadcast()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ours reports whether an object belongs to the sequence being played.
func (l *lane) ours(k kind, name string) bool {
	if k.cluster {
		rest, ok := strings.CutPrefix(name, l.ns+"-")
		if !ok {
			return false
		}
		name = rest
	}
	return name != "default" && name != "kube-root-ca.crt"
}

func (l *lane) take(r ref, kind string, o object, raw json.RawMessage) {
	if kind == "DELETED" {
		delete(l.live, r)
		l.ended[r] = o.rev()
	} else {
		l.live[r] = o
	}
	if !l.sentinel(r) {
		l.events = append(l.events, event{r, kind, o.rev(), o, raw})
	}
}

// await waits until ok, which is called with the lane locked.
func (l *lane) await(ctx context.Context, patience time.Duration, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ok() {
		if l.broken != nil {
			return l.broken
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: waited %s for %s; there are %v", l.name, patience, what, l.names())
		}
		l.changed.Wait()
	}
	return nil
}

func (l *lane) names() []string {
	var out []string
	for r, o := range l.live {
		out = append(out, fmt.Sprintf("%s %+v", r, o.Metadata))
	}
	slices.Sort(out)
	return out
}

const jsonType = "application/json"

// answer is what a server says.
type answer struct {
	Code     int
	Body     []byte
	Warnings []string
}

// ask sends one request.
func (l *lane) ask(ctx context.Context, method, path string, q url.Values, contentType string, body []byte) (answer, error) {
	return l.askFor(ctx, method, path, q, contentType, jsonType, body)
}

func (l *lane) askFor(ctx context.Context, method, path string, q url.Values, contentType, accept string, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url(path, q), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("User-Agent", "fidelity") // it names the field manager
	if len(body) > 0 {
		r.Header.Set("Content-Type", contentType)
	}
	resp, err := l.http.Do(r)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %s %s: %w", l.name, method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.Header.Get("Content-Type") == protobufType {
		b, err = fromProtobuf(b)
	}
	return answer{resp.StatusCode, b, resp.Header["Warning"]}, err
}

func (l *lane) url(path string, q url.Values) string {
	u := *l.base
	u.Path, u.RawQuery = path, q.Encode()
	return u.String()
}

// path is where an object, a subresource or with an empty name a collection is.
func (l *lane) path(k kind, version, name, sub string) string {
	if version == "" {
		version = k.version
	}
	p := k.prefix(version)
	if !k.cluster {
		p += "/namespaces/" + l.ns
	}
	p += "/" + k.resource
	if name != "" {
		p += "/" + name
	}
	if sub != "" {
		p += "/" + sub
	}
	return p
}
