package external_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// wild is a driver with every capability, one method of which misbehaves until it is tamed.
type wild struct {
	named
	method string
	how    func()

	mu    sync.Mutex
	tamed bool
	met   int
}

// comes is called by each method before it does anything.
func (w *wild) enters(method string) {
	w.mu.Lock()
	wild := method == w.method && !w.tamed
	if wild {
		w.met++
	}
	w.mu.Unlock()
	if wild {
		w.how()
	}
}

func (w *wild) tame() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tamed = true
}

func (w *wild) times() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.met
}

func (w *wild) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	w.enters("Observe")
	return w.named.Observe(ctx, r)
}

func (w *wild) Compare(r external.CompareRequest[*thing.Thing, item]) external.Changes {
	w.enters("Compare")
	return w.named.Compare(r)
}

func (w *wild) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	response, err := w.named.Create(ctx, r)
	response.ID = r.ID
	if w.method == "Poll" || w.method == "Cancel" {
		response.Operation.ID = "op-1"
	}
	w.enters("Create") // the worst moment: it is made, and nothing is recorded
	return response, err
}

func (w *wild) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	w.enters("Update")
	return w.named.Update(ctx, r)
}

func (w *wild) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, *cloudClient]) (external.DeleteResponse, error) {
	w.enters("Delete")
	return w.named.Delete(ctx, r)
}

func (w *wild) Unmark(ctx context.Context, r external.UnmarkRequest[*thing.Thing, *cloudClient]) (external.UnmarkResponse, error) {
	w.enters("Unmark")
	return w.named.Unmark(ctx, r)
}

func (w *wild) Mark(ctx context.Context, r external.MarkRequest[*thing.Thing, *cloudClient]) (external.MarkResponse, error) {
	w.enters("Mark")
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, nil, &i); err != nil {
		return external.MarkResponse{}, err
	}
	i.Tags = r.Mark.On(i.Tags)
	return external.MarkResponse{}, r.Client.call(ctx, http.MethodPut, r.ID, &i, nil)
}

func (w *wild) Find(ctx context.Context, r external.FindRequest[*thing.Thing, *cloudClient]) (external.FindResponse, error) {
	w.enters("Find")
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.Object.Name, nil, &i); err != nil {
		return external.FindResponse{}, nil //nolint:nilerr // there is none
	}
	return external.FindResponse{Found: []external.Found{{ID: r.Object.Name, Mark: external.MarkOf(i.Tags)}}}, nil
}

func (w *wild) Poll(context.Context, external.PollRequest[*thing.Thing, *cloudClient]) (external.PollResponse[item], error) {
	w.enters("Poll")
	w.mu.Lock()
	defer w.mu.Unlock()
	return external.PollResponse[item]{Done: w.tamed, After: time.Millisecond}, nil
}

func (w *wild) Cancel(context.Context, external.CancelRequest[*thing.Thing, *cloudClient]) (external.CancelResponse, error) {
	w.enters("Cancel")
	return external.CancelResponse{}, nil
}

func (w *wild) Connection(t *thing.Thing) external.Connection {
	if t.Name != "" { // not while the controller is made
		w.enters("Connection")
	}
	return external.Connection{To: &api.SecretReference{}}
}

func (w *wild) ExternalName(t *thing.Thing) (string, error) {
	w.enters("ExternalName")
	return w.named.ExternalName(t)
}

func (w *wild) Reflect(r external.ReflectRequest[*thing.Thing, item]) {
	w.enters("Reflect")
	w.named.Reflect(r)
}

func (w *wild) Finish(context.Context, external.FinishRequest[*thing.Thing, item]) (external.FinishResponse, error) {
	w.enters("Finish")
	return external.FinishResponse{}, nil
}

func (w *wild) LateInit(external.LateInitRequest[*thing.Thing, item]) { w.enters("LateInit") }

func (w *wild) DependsOn(t *thing.Thing) []external.Dependency {
	if t.Name != "" { // not while the controller is made
		w.enters("DependsOn")
	}
	return w.named.DependsOn(t)
}

func (w *wild) Classify(error) external.Class {
	w.enters("Classify")
	return external.ClassUnknown
}

// methods are those of the author: of every interface in the files that declare what a driver
// is and can be.
func methods(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"driver.go", "connection.go", "operations.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if i, ok := n.(*ast.InterfaceType); ok {
				for _, m := range i.Methods.List {
					for _, name := range m.Names {
						out = append(out, name.Name)
					}
				}
			}
			return true
		})
	}
	return out
}

// TestEveryMethod lets each of the author's methods panic, and end its goroutine: the process
// lives, the status names the method, and nothing is lost.
func TestEveryMethod(t *testing.T) {
	t.Parallel()
	for _, method := range methods(t) {
		for how, f := range map[string]func(){"panics": func() { panic("nil map") }, "exits": runtime.Goexit} {
			t.Run(method+" "+how, func(t *testing.T) {
				t.Parallel()
				misbehave(t, &wild{method: method, how: f})
			})
		}
	}
}

// misbehave leads an object through its life, past the method that does what it should not.
func misbehave(t *testing.T, d *wild) {
	t.Helper()
	w := newOperatorTest(t, d, func(o *options) { o.AssignedIDs, o.OperationDeadline = d.method == "Find", time.Millisecond })
	if d.method == "Classify" { // there is something to classify
		w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusInternalServerError, effect: true}))
	}
	creates := 1
	if d.method == "Mark" {
		creates = 0
		w.cloud.put("a", item{Size: 1, State: "ONLINE"})
	}
	history := w.follow("a") // a message stands only until the next pass
	obj := w.create(annotated(api.AnnotationAdoption, "always"), annotated(api.AnnotationLateInit, "true"))
	told := func() {
		t.Helper()
		if !w.until(func() bool { return d.times() > 0 }) {
			t.Fatalf("%s was never called; add it to the driver of this test, and guard it", d.method)
		}
		if d.method != "Classify" && strings.Contains(t.Name(), "panics") {
			history.until("a status that names "+d.method, func(o *thing.Thing) bool {
				return strings.Contains(o.Status.Message, d.method) || slices.ContainsFunc(o.Status.Conditions, func(c metav1.Condition) bool { return strings.Contains(c.Message, d.method) })
			})
		}
		w.cloud.faulty(nil)
		d.tame()
	}
	end := map[string]bool{"Delete": true, "Unmark": true}
	if !end[d.method] && d.method != "Update" {
		told()
	}
	w.ready()
	w.resize(2)
	if d.method == "Update" {
		told()
	}
	w.ready()
	if d.method == "Unmark" {
		w.annotate(api.AnnotationDeletion, "orphan")
	}
	w.delete()
	if end[d.method] {
		told()
	}
	w.gone()
	if left := w.cloud.get("a"); left != nil && d.method != "Unmark" {
		t.Errorf("%s is left: %+v", obj.Name, left)
	}
	if n := w.cloud.count(http.MethodPost); n != creates {
		t.Errorf("%d creates, want %d", n, creates)
	}
}

// state is the state of an object, if it is there.
func (w *operatorTest) state(name string) (state string, there bool) {
	obj := &thing.Thing{}
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, obj)
	return obj.Status.State, err == nil
}

// nothing is an error type whose nil pointer is no nil error.
type nothing struct{ text string }

func (n *nothing) Error() string { return n.text }

// typed returns a nil pointer for an error from a create that has succeeded.
type typed struct{ named }

func (d typed) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	if _, err := d.named.Create(ctx, r); err != nil {
		return external.CreateResponse[item]{}, err
	}
	var none *nothing
	return external.CreateResponse[item]{}, none
}

// asserting classifies errors by an assertion that does not hold for all.
type asserting struct{ named }

func (asserting) Classify(err error) external.Class {
	_ = err.(*apiError).code //nolint:errorlint,forcetypeassert // the bug
	return external.ClassUnknown
}

// TestACreateIsNotForgotten: the author's code panics between a create and what is noted of
// it. The object goes only after its thing.
func TestACreateIsNotForgotten(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why    string
		driver driver[*thing.Thing]
		lost   bool
	}{
		"a nil pointer for an error":   {"its Error panics", typed{}, false},
		"Classify of an answer lost":   {"it asserts a type that a lost answer has not", asserting{}, true},
		"Classify, by a marked driver": {"", &wild{method: "Classify", how: func() { panic("no") }}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOperatorTest(t, test.driver, func(o *options) { o.CallDeadline, o.CreateGrace = 300*time.Millisecond, 2*time.Second })
			away := make(chan struct{})
			if test.lost {
				w.cloud.faulty(func(method, _ string) *answer {
					if method == http.MethodPost {
						close(away)
						return &answer{hang: true, effect: true}
					}
					select {
					case <-away: // and observations fail from then on
						return &answer{code: http.StatusServiceUnavailable}
					default:
						return nil
					}
				})
			}
			w.create()
			w.awaitCalls(http.MethodPost, 1)
			w.until(func() bool { return w.get("a").Status.State != "Pending" && w.get("a").Status.State != "" })
			w.delete()
			w.until(func() bool { state, there := w.state("a"); return !there || state == "Terminating" })
			w.cloud.faulty(nil)
			w.gone()
			if left := w.cloud.get("a"); left != nil {
				t.Errorf("%s: the object is gone, its thing is not: %+v; rules %v", test.why, left, w.trace.rules("a"))
			}
		})
	}
}

// renewing is the transport of a client that needs its context at every request, as one that
// renews tokens does.
type renewing struct {
	life context.Context
	http.RoundTripper
}

func (r renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := r.life.Err(); err != nil {
		return nil, err
	}
	return r.RoundTripper.RoundTrip(req)
}

// TestClientThatKeepsItsContext: the context of Connect lives as long as the client.
func TestClientThatKeepsItsContext(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, named{})
	w.options.Connect = func(ctx context.Context) (*cloudClient, error) {
		return &cloudClient{base: w.cloud.URL, http: &http.Client{Transport: renewing{ctx, &http.Transport{DisableKeepAlives: true}}}}, nil
	}
	w.start()
	w.create()
	w.ready()
}

// TestClientThatIsRefused: its token expired, and only a new client gets another one.
func TestClientThatIsRefused(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, named{})
	connect, made := w.options.Connect, 0
	w.options.Connect = func(ctx context.Context) (*cloudClient, error) {
		made++ // once at a time
		if made > 1 {
			w.cloud.faulty(nil)
		}
		return connect(ctx)
	}
	w.start()
	w.cloud.faulty(func(string, string) *answer { return &answer{code: http.StatusUnauthorized} })
	w.create()
	w.ready()
}
