package loop_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trace"
)

// gauging is an ordinary reconciler of a kind with the common status, which has fields and conditions of its own there.
type gauging struct {
	client.Client
	mu    sync.Mutex
	calls int
	// change changes the status in a call, which are numbered from 1. What it changed is written.
	change func(call int, p *probe.Probe) error
	ends   chan trace.End
}

// Record makes it a trace.Sink.
func (g *gauging) Record(r trace.Record) {
	if e, over := r.Event.(trace.End); over {
		g.ends <- e
	}
}

func (g *gauging) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &probe.Probe{}
	if err := g.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g.calls++
	before := p.DeepCopy()
	failed := g.change(g.calls, p)
	if !equality.Semantic.DeepEqual(before.Status, p.Status) {
		if err := g.Status().Update(ctx, p); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, failed
}

// sizes writes what depends on the spec: a field, a condition of its own type, and one of a type that others of
// trimtab's authors use.
func sizes(_ int, p *probe.Probe) error {
	p.Status.Note = fmt.Sprint("size ", p.Spec.Size)
	for _, t := range []string{"PumpRuns", "Creating"} {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: t, Status: metav1.ConditionFalse, Reason: "Theirs", Message: p.Status.Note})
	}
	return nil
}

func (g *gauging) into(w *controllerTest) {
	w.t.Helper()
	g.ends = make(chan trace.End, 1000)
	w.manage(func(mgr ctrl.Manager) error {
		g.Client = mgr.GetClient()
		return loop.New(loop.Wrap[*probe.Probe](g), options{WakeOn: []string{"example.org/wake"}, Trace: g}).SetupWithManager(mgr)
	})
}

// end waits for the end of the next pass, which is to have an outcome.
func (g *gauging) end(t *testing.T, outcome string) {
	t.Helper()
	select {
	case e := <-g.ends:
		if e.Outcome != outcome {
			t.Errorf("a pass ended with %+v, want %s", e, outcome)
		}
	case <-time.After(poll.Patience):
		t.Fatal("no pass ended")
	}
}

// statusWrites lists the writes of the status of the Probe a, with their codes if they are others than 200.
func (w *controllerTest) statusWrites() []string {
	var out []string
	for _, r := range w.requests.Writes("probes", w.namespace, "a") {
		if r.Subresource != "status" {
			continue
		}
		if out = append(out, r.Verb); r.Code != http.StatusOK {
			out[len(out)-1] += fmt.Sprint(" ", r.Code)
		}
	}
	return out
}

// wantTheirs compares what is the reconciler's in the status, and what is the loop's.
func wantTheirs(w *controllerTest, note, types string) {
	w.t.Helper()
	p := w.get("a")
	var has []string
	for _, c := range p.Status.Conditions {
		has = append(has, c.Type)
	}
	slices.Sort(has)
	if got := strings.Join(has, " "); p.Status.Note != note || got != types {
		w.t.Errorf("note %q and conditions %q, want %q and %q", p.Status.Note, got, note, types)
	}
	if !ready(p) || p.Status.AppliedGeneration != p.Generation || p.Status.State != "Succeeded" {
		w.t.Errorf("the status of generation %d is %+v", p.Generation, p.Status)
	}
}

// TestRefusedStatusOfWrapped: what is left of a status that the API server refuses has what is the reconciler's.
func TestRefusedStatusOfWrapped(t *testing.T) {
	t.Parallel()
	w := newNamespaceTest(t, answering(http.StatusUnprocessableEntity,
		`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"status.handledReconcile: Invalid value: bad"}`,
		func(_, path, body string) bool {
			return strings.HasSuffix(path, "/status") && strings.Contains(body, `"handledReconcile":"bad"`)
		}))
	g := &gauging{change: sizes}
	g.into(w)
	w.create("a", func(p *probe.Probe) { p.Annotations = map[string]string{"trimtab.dev/reconcile": "bad"} })
	g.end(t, "Done")
	p := w.get("a")
	for _, kind := range []string{"Creating", "PumpRuns", "Ready"} {
		if meta.FindStatusCondition(p.Status.Conditions, kind) == nil {
			t.Errorf("there is no condition %s", kind)
		}
	}
	if p.Status.Note != "size 0" || p.Status.State != "Succeeded" || !strings.Contains(p.Status.Message, "refused by the API server") {
		t.Errorf("status %+v", p.Status)
	}
}

// TestStatusOfWrapped: the loop and an ordinary reconciler write the same status, and neither undoes what the other wrote.
func TestStatusOfWrapped(t *testing.T) {
	t.Parallel()
	const all = "Creating PumpRuns Ready"
	t.Run("each writes its own once for each generation, and nothing without a change", func(t *testing.T) {
		t.Parallel()
		w, g := newNamespaceTest(t), &gauging{change: sizes}
		g.into(w)
		w.create("a")
		g.end(t, "Done")
		wantTheirs(w, "size 0", all)
		for n := range 3 {
			w.resize(n + 1)
			g.end(t, "Done")
			wantTheirs(w, fmt.Sprint("size ", n+1), all)
		}
		w.patch("a", `{"metadata":{"annotations":{"example.org/wake":"1"}}}`)
		g.end(t, "Done")
		if diff := cmp.Diff([]string{"update", "apply", "update", "apply", "update", "apply", "update", "apply"}, w.statusWrites()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	t.Run("a reconciler that writes in each pass, and a second process", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		g := &gauging{change: func(call int, p *probe.Probe) error {
			p.Spec.Size = call // not written: the spec is no part of the status
			return sizes(call, p)
		}}
		g.into(w)
		w.create("a")
		g.end(t, "Done")
		for n := range 20 {
			w.patch("a", fmt.Sprintf(`{"metadata":{"annotations":{"example.org/wake":"%d"}}}`, n))
			g.end(t, "Done")
		}
		wantTheirs(w, "size 21", all)
		w.stop()
		w.resize(7)
		g.into(w)
		g.end(t, "Done")
		wantTheirs(w, "size 22", all)
		updates, applies := 0, 0
		for _, verb := range w.statusWrites() {
			switch verb {
			case "update":
				updates++
			case "apply":
				applies++
			default:
				t.Errorf("a write of the status is %q", verb)
			}
		}
		if updates != 22 || applies != 2 {
			t.Errorf("%d writes by the reconciler and %d by the loop, want 22 and one for each generation", updates, applies)
		}
	})
	t.Run("what is the loop's is the loop's", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		g := &gauging{change: func(call int, p *probe.Probe) error {
			if call == 1 {
				p.Status.Message = "theirs"
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Theirs"})
			}
			return sizes(call, p)
		}}
		g.into(w)
		w.create("a")
		g.end(t, "Conflict") // what the process before this one wrote is not overwritten unseen
		g.end(t, "Done")
		wantTheirs(w, "size 0", all)
		if diff := cmp.Diff([]string{"update", "apply", "patch"}, w.statusWrites()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
	t.Run("a condition of which both wrote a part", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		g := &gauging{change: func(call int, p *probe.Probe) error {
			if call == 1 {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Theirs"})
			}
			if err := sizes(call, p); err != nil || call > 2 {
				return err
			}
			return reconcile.TerminalError(errBroken)
		}}
		g.into(w)
		w.create("a")
		g.end(t, "Conflict")
		g.end(t, "Terminal")
		if c := meta.FindStatusCondition(w.get("a").Status.Conditions, "Creating"); c == nil || c.Reason != "Theirs" {
			t.Errorf("a failed pass made the reconciler's condition %+v", c)
		}
		w.resize(1)
		g.end(t, "Done")
		wantTheirs(w, "size 1", all)
		if diff := cmp.Diff([]string{"update", "apply", "update", "apply 422", "patch"}, w.statusWrites()); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}
