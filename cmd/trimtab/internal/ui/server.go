package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

//go:embed web
var web embed.FS

// Options are what a server shows and may do.
type Options struct {
	// Cluster returns a new reader of the cluster, for one question.
	Cluster func() *model.Cluster
	// Watch calls changed soon after an object of a kind changes, until ctx ends or the watch does. Nil watches nothing: what is
	// shown is at most ten seconds old.
	Watch func(ctx context.Context, kind schema.GroupVersionKind, namespace string, changed func()) error
	// Namespace is the namespace whose objects are shown; those of all if it is empty.
	Namespace string
	// Name is what the cluster is called.
	Name string
	// Actions are what can be done to an object. Empty: the dashboard is read-only.
	Actions []Action
	// Operator is where the operator of the objects tells what it has done. Its zero value: it is not known.
	Operator inspect.Operator
	// Module is the path of the operator's module, for the tests that are saved. Empty: it is not known.
	Module string
}

// Action is something that can be done to an object.
type Action struct {
	// Verb names it, such as reconcile.
	Verb string
	// Command returns the command that does the same.
	Command func(model.Ref) string
	// For returns what follows from it for an object of a cluster. It is not offered where it makes no sense, or the permissions do not suffice.
	For func(context.Context, *model.Cluster, model.Object) (effects []string, offered bool)
	// Do does it to the object with a UID, if what follows from it is still agreed to. That another object has the name by now is an
	// error.
	Do func(ctx context.Context, r model.Ref, uid types.UID, agreed func(effects []string) error) error
}

// Server is the dashboard. Its zero value is not usable.
type Server struct {
	options Options
	key     string
	changes *changes
	seen    readings
	full    fullness
}

// keyHeader is the header of requests that has the key. A page of another origin can neither know the key nor set the header.
const keyHeader = "X-Trimtab-Key"

// New returns a server.
func New(o Options) *Server {
	return &Server{options: o, key: rand.Text(), changes: newChanges(o)}
}

// Run watches what is shown until ctx ends.
func (s *Server) Run(ctx context.Context) { s.changes.run(ctx) }

// URL is the address of the page, with the key. Browsers do not send the part after the #; the page reads it.
func (s *Server) URL(at net.Addr) string { return "http://" + at.String() + "/#key=" + s.key }

// Handler returns what serves requests that arrive at an address.
func (s *Server) Handler(at net.Addr) http.Handler {
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/attention", s.streamed(s.attention))
	mux.HandleFunc("GET /api/object", s.streamed(s.object))
	mux.HandleFunc("GET /api/operator", s.streamed(s.operator))
	mux.HandleFunc("GET /api/pass", s.streamed(s.pass))
	mux.HandleFunc("GET /api/test", s.test)
	mux.HandleFunc("POST /api/act", s.act)
	return s.guarded(at.String(), mux)
}

// guarded lets only requests pass that name this server. What is about the cluster needs the key, too; the page itself is the same
// for everybody.
func (s *Server) guarded(host string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if r.Host != host && r.Host+":80" != host { // a name of another site may lead to this address
			http.Error(w, "this server is called "+host, http.StatusMisdirectedRequest)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") && !s.knows(r.Header.Get(keyHeader)) {
			http.Error(w, "open the address that was printed when this server was started; it has a key", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) knows(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(s.key)) == 1
}

// refOf returns the object that a query names.
func refOf(q url.Values) (model.Ref, error) {
	r := model.Ref{APIVersion: q.Get("apiVersion"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}
	if r.APIVersion == "" || r.Kind == "" || r.Name == "" {
		return r, errors.New("name an object by apiVersion, kind, namespace and name")
	}
	return r, nil
}

// attention is the first page.
func (s *Server) attention(ctx context.Context, _ url.Values) (any, error) {
	summary, err := s.options.Cluster().Status(ctx, schema.GroupVersionKind{}, s.options.Namespace)
	if err != nil {
		return nil, err
	}
	return struct {
		Cluster   string `json:"cluster"`
		Namespace string `json:"namespace"`
		model.Summary
		Groups []group `json:"groups"`
	}{s.options.Name, s.options.Namespace, summary, groupsOf(summary.NotReady)}, nil
}

// group is objects that are not ready for one reason.
type group struct {
	Reason  string         `json:"reason"`
	Objects []model.Object `json:"objects"`
}

// groupsOf puts objects of a reason together; they are in that order.
func groupsOf(objects []model.Object) []group {
	groups := []group{}
	for _, o := range objects {
		if len(groups) == 0 || groups[len(groups)-1].Reason != o.Why() {
			groups = append(groups, group{Reason: o.Why()})
		}
		last := &groups[len(groups)-1]
		last.Objects = append(last.Objects, o)
	}
	return groups
}

// page is what is shown of an object.
type page struct {
	Why        model.Explanation  `json:"why"`
	Conditions []metav1.Condition `json:"conditions"`
	Tree       branch             `json:"tree"`
	History    model.History      `json:"history"`
	Machine    *machine           `json:"machine,omitempty"`
	Next       []next             `json:"next"`
	Axis       axis               `json:"axis"`
	Commands   []command          `json:"commands"`
	Passes     passes             `json:"passes"`
}

// command is what can be done to an object. Verb is empty if it is a command to copy only.
type command struct {
	Verb    string   `json:"verb,omitempty"`
	Text    string   `json:"text"`
	Effects []string `json:"effects,omitempty"`
	// Shown names the effects: whoever has them done has seen these.
	Shown string `json:"shown,omitempty"`
}

// shown names effects.
func shown(effects []string) string {
	sum := sha256.Sum256([]byte(strings.Join(effects, "\n")))
	return hex.EncodeToString(sum[:8])
}

func (s *Server) object(ctx context.Context, q url.Values) (any, error) {
	r, err := refOf(q)
	if err != nil {
		return nil, err
	}
	c := s.options.Cluster()
	why, err := c.Why(ctx, r)
	if err != nil {
		return nil, err
	}
	tree, _ := c.Tree(ctx, r)
	history, err := c.History(ctx, r)
	if err != nil {
		return nil, err
	}
	records, missed := s.records(ctx, why.Object)
	history = lived(history, records, s.seen.note(why.Object.UID, why.Object.Reported(), time.Now()))
	why.Unseen = c.Unseen() // all that was not seen
	if missed != nil && !errors.Is(missed, errUnknown) {
		why.Unseen = append(why.Unseen, missed.Error())
	}
	p := page{
		Why: why, Tree: treeOf(tree, why.Chain), History: history, Conditions: why.Object.Conditions(), Commands: []command{},
		Passes: latestOf(records, missed), Machine: machineOf(c.Flow(ctx, why.Object), standing{why.Object.Reported(), why.Object.Reason, why.Object.Conditions()}, history.Moments),
	}
	p.Next = nextOf(why.Object.Paused, p.Conditions, records, time.Now())
	p.Axis = axisOf(tree, p.Machine, history.Moments, records, time.Now())
	for _, a := range s.options.Actions {
		if effects, offered := a.For(ctx, c, why.Object); offered {
			p.Commands = append(p.Commands, command{a.Verb, a.Command(r), effects, shown(effects)})
		}
	}
	return p, nil
}

// act does what a request asks for.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	ref, err := refOf(q)
	if uid := q.Get("uid"); err == nil && uid == "" {
		err = errors.New("name the object by its uid, too, so that no other one of its name is meant")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	verb := q.Get("verb")
	at := slices.IndexFunc(s.options.Actions, func(a Action) bool { return a.Verb == verb })
	if at < 0 {
		http.Error(w, "there is no action "+verb, http.StatusBadRequest)
		return
	}
	agreed := func(effects []string) error {
		if shown(effects) != q.Get("shown") {
			return fmt.Errorf("%s: what follows from %s has changed since the page showed it: %s; look at it again", ref, verb, strings.Join(effects, "; "))
		}
		return nil
	}
	if err := s.options.Actions[at].Do(r.Context(), ref, types.UID(q.Get("uid")), agreed); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	s.changes.tell()
	w.WriteHeader(http.StatusNoContent)
}

// beat is how old what is shown may be, if no watch tells of a change. To show an object, the metadata of its whole namespace
// is listed.
const beat = 10 * time.Second

// rest is how long a page is not read again after it was, whatever changes: in a busy namespace, something always does.
const rest = time.Second

// streamed sends what a page shows, and again after each change of it, in the format of server-sent events. What goes wrong is an event,
// too.
func (s *Server) streamed(show func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		stream := http.NewResponseController(w)
		var sent string
		for ctx := r.Context(); ctx.Err() == nil; {
			changed := s.changes.next()
			now := eventOf(show(ctx, r.URL.Query()))
			text := ":\n\n" // so that a browser that is gone is noticed
			if now != sent {
				sent, text = now, now
			}
			if _, err := io.WriteString(w, text); err != nil || stream.Flush() != nil {
				return
			}
			pause(ctx, changed)
		}
	}
}

// eventOf is what a page shows, or what goes wrong, as an event.
func eventOf(value any, err error) string {
	event := "page"
	if err != nil {
		event, value = "problem", err.Error()
	}
	data, err := json.Marshal(value)
	if err != nil {
		event, data = "problem", []byte(`"the page cannot be written"`)
	}
	return "event: " + event + "\ndata: " + string(data) + "\n\n"
}

// pause waits until a page is to be read again. What changes during the rest is in the next page, too.
func pause(ctx context.Context, changed <-chan struct{}) {
	rested := time.After(rest)
	select {
	case <-ctx.Done():
	case <-changed:
	case <-time.After(beat):
	}
	select {
	case <-ctx.Done():
	case <-rested:
	}
}
