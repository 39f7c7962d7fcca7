package loop

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/trace"
)

// clockwork is a controller of one Probe on controller-runtime's own controller and queue, in
// simulated time, so that what takes seconds on a real server is exact here. Its store is no
// API server: it keeps the object and its status, and notes what is written.
type clockwork struct {
	t      *testing.T
	start  time.Time
	c      *Controller[*probe.Probe]
	queue  queue
	events handlerOf

	mu      sync.Mutex
	probe   *probe.Probe // nil once it is gone
	version int
	refuse  error // of status writes
	writes  []string
	calls   []visited
	attempt int // of the last pass, as the trace has it
	ends    []trace.End
	passes  int
	logged  []string
}

type handlerOf = interface {
	Create(context.Context, event.TypedCreateEvent[*probe.Probe], queue)
	Update(context.Context, event.TypedUpdateEvent[*probe.Probe], queue)
	Delete(context.Context, event.TypedDeleteEvent[*probe.Probe], queue)
}

// visited is a call of the author's code.
type visited struct {
	Method  string
	At      time.Duration
	Attempt int
	Last    bool
}

// scripted is an author who does what a test says.
type scripted struct {
	w         *clockwork
	reconcile func(r *Run[*probe.Probe]) Outcome
}

func (s scripted) Reconcile(_ context.Context, r *Run[*probe.Probe]) Outcome {
	s.w.called("reconcile", r)
	return s.reconcile(r)
}

// scriptedHandler looks at failures, too.
type scriptedHandler struct {
	scripted
	onError func(r *Run[*probe.Probe]) ErrorOutcome
}

func (s scriptedHandler) OnError(_ context.Context, r *Run[*probe.Probe], _ error) ErrorOutcome {
	s.w.called("onError", r)
	return s.onError(r)
}

func (w *clockwork) called(method string, r *Run[*probe.Probe]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, visited{method, time.Since(w.start), r.Retry().Attempt, r.Retry().Last})
}

// wind runs play in simulated time with a controller that calls reconcile, and onError if it
// is not nil.
func wind(t *testing.T, o Options[*probe.Probe], reconcile func(*Run[*probe.Probe]) Outcome, onError func(*Run[*probe.Probe]) ErrorOutcome, play func(w *clockwork)) {
	t.Helper()
	windUp(t, o, func(w *clockwork) Reconciler[*probe.Probe] {
		author := scripted{w, reconcile}
		if onError != nil {
			return scriptedHandler{author, onError}
		}
		return author
	}, play)
}

// windWrapped is wind for an ordinary reconciler, which has no handler of errors. It does not know which retry a call is:
// the trace does, but not whether it is the last.
func windWrapped(t *testing.T, o Options[*probe.Probe], do func(*Run[*probe.Probe]) Outcome, _ func(*Run[*probe.Probe]) ErrorOutcome, play func(w *clockwork)) {
	t.Helper()
	windUp(t, o, func(w *clockwork) Reconciler[*probe.Probe] {
		policy := o.Retry
		return Wrap[*probe.Probe](reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			method, p := "reconcile", &probe.Probe{}
			if err := (store{w: w}).Get(ctx, req.NamespacedName, p); err != nil {
				method = "gone"
			} else if !p.DeletionTimestamp.IsZero() {
				method = "delete"
			}
			w.mu.Lock()
			last := policy.Attempts < 0 || policy.Attempts > 0 && w.attempt >= policy.Attempts
			w.calls = append(w.calls, visited{method, time.Since(w.start), w.attempt, last})
			w.mu.Unlock()
			o := do(nil)
			return reconcile.Result{RequeueAfter: o.Delay()}, o.Err()
		}))
	}, play)
}

// windUp is wind for the author that of returns.
func windUp(t *testing.T, o Options[*probe.Probe], of func(*clockwork) Reconciler[*probe.Probe], play func(w *clockwork)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &clockwork{t: t, start: time.Now()}
		w.probe = &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", Generation: 1}}
		o.Trace = w
		w.c = New(of(w), o)
		w.wire()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		synctest.Wait()
		w.events.Create(ctx, event.TypedCreateEvent[*probe.Probe]{Object: w.probe.DeepCopy()}, w.queue)
		synctest.Wait()
		play(w)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for _, line := range w.logged {
			if strings.Contains(line, "trimtab panicked") {
				t.Errorf("a bug of the loop: %s", line)
			}
		}
	})
}

// wire does what SetupWithManager does.
func (w *clockwork) wire() {
	c := w.c
	c.scheme = runtime.NewScheme()
	if err := probe.AddToScheme(c.scheme); err != nil {
		w.t.Fatal(err)
	}
	c.name, c.gvk = or(c.options.Name, "probe"), probe.GroupVersion.WithKind("Probe")
	c.client, c.live = store{w: w}, store{w: w}
	c.events, c.log = &events.FakeRecorder{}, logr.Discard()
	w.version = 1
	w.probe.ResourceVersion = "1"
	w.events = countEvents(c)
}

func (w *clockwork) run(ctx context.Context) error {
	log := funcr.New(func(_, args string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.logged = append(w.logged, args)
	}, funcr.Options{})
	ctrl, err := controller.NewTypedUnmanaged("probe", controller.Options{
		Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			w.mu.Lock()
			w.passes++
			w.mu.Unlock()
			return w.c.Reconcile(ctx, req)
		}),
		RateLimiter: w.c.memory, Logger: log, SkipNameValidation: new(true),
	})
	if err != nil {
		return err
	}
	if err := ctrl.Watch(source.Func(func(_ context.Context, q queue) error {
		w.queue = q
		return nil
	})); err != nil {
		return err
	}
	if err := w.c.begin(ctx); err != nil {
		return err
	}
	return ctrl.Start(ctx)
}

// Record takes the starts and the ends of passes.
func (w *clockwork) Record(r trace.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := r.Event.(type) {
	case trace.Start:
		w.attempt = e.Attempt
	case trace.End:
		w.ends = append(w.ends, e)
	}
}

// until lets time pass up to d after the start.
func (w *clockwork) until(d time.Duration) {
	if wait := d - time.Since(w.start); wait > 0 {
		<-time.After(wait)
	}
	synctest.Wait()
}

// patch changes the spec, as a user does.
func (w *clockwork) patch() { w.update(func(p *probe.Probe) { p.Spec.Size++ }) }

// doom deletes the object, which a finalizer keeps.
func (w *clockwork) doom() {
	w.update(func(p *probe.Probe) {
		p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"example.org/theirs"}
	})
}

func (w *clockwork) update(change func(*probe.Probe)) {
	w.mu.Lock()
	before := w.probe.DeepCopy()
	w.version++
	w.probe.Generation++
	change(w.probe)
	w.probe.ResourceVersion = strconv.Itoa(w.version)
	after := w.probe.DeepCopy()
	w.mu.Unlock()
	w.events.Update(w.t.Context(), event.TypedUpdateEvent[*probe.Probe]{ObjectOld: before, ObjectNew: after}, w.queue)
}

// remove takes the object away.
func (w *clockwork) remove() {
	w.mu.Lock()
	last := w.probe
	w.probe = nil
	w.mu.Unlock()
	w.events.Delete(w.t.Context(), event.TypedDeleteEvent[*probe.Probe]{Object: last}, w.queue)
}

// of lists the calls of method so far.
func (w *clockwork) of(method string) []visited {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []visited
	for _, c := range w.calls {
		if c.Method == method {
			c.At = c.At.Truncate(10 * time.Millisecond) // what the queue takes is not ours
			out = append(out, c)
		}
	}
	return out
}

func (w *clockwork) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.writes...)
}

// store reads and writes the Probe.
type store struct {
	client.Client
	w *clockwork
}

func (s store) Get(_ context.Context, key types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.probe == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: s.w.c.gvk.Group, Resource: s.w.c.gvk.Kind}, key.Name)
	}
	if out, ok := obj.(*probe.Probe); ok {
		s.w.probe.DeepCopyInto(out)
	}
	return nil
}

func (s store) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(obj)
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.writes = append(s.w.writes, "patch "+string(data))
	return err
}

func (s store) Status() client.SubResourceWriter { return statusOfStore{w: s.w} }

type statusOfStore struct {
	client.SubResourceWriter
	w *clockwork
}

func (s statusOfStore) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if patch.Type() != types.ApplyPatchType {
		return errors.New("a status is applied here")
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.writes = append(s.w.writes, "apply status")
	if s.w.refuse != nil {
		return s.w.refuse
	}
	var applied probe.Probe
	if err := json.Unmarshal(data, &applied); err != nil {
		return err
	}
	s.w.version++
	s.w.probe.Status = applied.Status
	s.w.probe.ResourceVersion = strconv.Itoa(s.w.version)
	if answer, ok := obj.(*probe.Probe); ok {
		s.w.probe.DeepCopyInto(answer)
	}
	return nil
}
