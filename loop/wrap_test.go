package loop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// ordinary is a reconciler as kubebuilder scaffolds it: with a client, its own finalizer, and its own status.
type ordinary struct {
	client.Client
	mu    sync.Mutex
	calls []string
	did   chan string
	fail  func(p *probe.Plain) error // nil fails never
}

func (o *ordinary) note(what string) {
	o.mu.Lock()
	o.calls = append(o.calls, what)
	o.mu.Unlock()
	o.did <- what
}

const theirFinalizer = "example.org/ordinary"

func (o *ordinary) Reconcile(ctx context.Context, req ctrl.Request) (_ ctrl.Result, err error) {
	what := "gone"
	defer func() { o.note(what) }()
	p := &probe.Plain{}
	if err := o.Get(ctx, req.NamespacedName, p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if what = "reconcile"; !p.DeletionTimestamp.IsZero() {
		what = "delete"
		controllerutil.RemoveFinalizer(p, theirFinalizer)
		return ctrl.Result{}, o.Update(ctx, p)
	}
	if o.fail != nil {
		if err := o.fail(p); err != nil {
			what = "fail"
			return ctrl.Result{}, err
		}
	}
	if controllerutil.AddFinalizer(p, theirFinalizer) {
		if err := o.Update(ctx, p); err != nil {
			return ctrl.Result{}, err
		}
	}
	if note := fmt.Sprint("size ", p.Spec.Size); p.Status.Note != note {
		p.Status.Note = note
		return ctrl.Result{}, o.Status().Update(ctx, p)
	}
	return ctrl.Result{}, nil
}

// await waits for the next call that is what.
func (o *ordinary) await(t *testing.T, what string) {
	t.Helper()
	for {
		select {
		case got := <-o.did:
			if got == what {
				return
			}
		case <-time.After(poll.Patience):
			t.Fatalf("no call %q; calls: %v", what, o.calls)
		}
	}
}

// wrapInto starts a controller that wraps o.
func wrapInto(w *controllerTest, o *ordinary, options loop.Options[*probe.Plain]) {
	w.t.Helper()
	o.did = make(chan string, 1000)
	w.manage(func(mgr ctrl.Manager) error {
		o.Client = mgr.GetClient()
		return loop.New(loop.Wrap[*probe.Plain](o), options).SetupWithManager(mgr)
	})
}

func (w *controllerTest) plain(name string) *probe.Plain {
	w.t.Helper()
	p := plainNamed(name)
	p.Namespace = w.namespace
	if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestWrap: an ordinary reconciler does in the loop what it did before.
func TestWrap(t *testing.T) {
	t.Parallel()
	t.Run("its life", func(t *testing.T) {
		t.Parallel()
		w, o := newNamespaceTest(t), &ordinary{}
		wrapInto(w, o, loop.Options[*probe.Plain]{})
		createAs(t, w, plainNamed("a"))
		noted := func(size int) {
			t.Helper()
			testenv.Wait(t, w.admin, w.plain("a"), "its status", func(p *probe.Plain) bool { return p.Status.Note == fmt.Sprint("size ", size) })
		}
		noted(0)
		patchAs(t, w, plainNamed("a"), false, `{"spec":{"size":2}}`)
		noted(2)
		p := plainNamed("a")
		p.Namespace = w.namespace
		if err := w.admin.Delete(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		o.await(t, "delete")
		testenv.Gone(t, w.admin, p, "to be gone")
		o.await(t, "gone")
		var got []string
		for _, r := range w.requests.Writes("plains", w.namespace, "a") {
			if r.Code != http.StatusConflict {
				got = append(got, strings.TrimSpace(r.Verb+" "+r.Subresource))
			}
		}
		if diff := cmp.Diff([]string{"update", "update status", "update status", "update"}, got); diff != "" {
			t.Errorf("writes, which are all its own (-want +got):\n%s", diff)
		}
	})
	t.Run("its failures", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		failures := []error{
			errBroken,
			apierrors.NewConflict(schema.GroupResource{Resource: "plains"}, "a", errBroken),
			nil,
		}
		w, o := newNamespaceTest(t), &ordinary{}
		o.fail = func(p *probe.Plain) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case p.Spec.Size == 2:
				panic("its panic")
			case p.Spec.Size == 3:
				return reconcile.TerminalError(errBroken)
			case len(failures) == 0:
				return nil
			}
			err := failures[0]
			failures = failures[1:]
			return err
		}
		wrapInto(w, o, loop.Options[*probe.Plain]{Retry: linear(1)})
		createAs(t, w, plainNamed("a"))
		for _, what := range []string{"fail", "fail", "reconcile"} { // one retry is allowed, and a conflict is none
			o.await(t, what)
		}
		testenv.Wait(t, w.admin, w.plain("a"), "its status", func(p *probe.Plain) bool { return p.Status.Note == "size 0" })
		patchAs(t, w, plainNamed("a"), false, `{"spec":{"size":2}}`)
		o.await(t, "reconcile") // panicked, and is repeated
		o.await(t, "reconcile")
		patchAs(t, w, plainNamed("a"), false, `{"spec":{"size":3}}`)
		o.await(t, "fail") // for good
		patchAs(t, w, plainNamed("a"), false, `{"spec":{"size":4}}`)
		testenv.Wait(t, w.admin, w.plain("a"), "its status", func(p *probe.Plain) bool { return p.Status.Note == "size 4" })
	})
	t.Run("a kind with the common status gets its conditions from the loop", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		var mu sync.Mutex
		fail := true
		w.manage(loop.New(loop.Wrap[*probe.Probe](reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return reconcile.Result{}, errBroken
			}
			return reconcile.Result{}, nil
		})), options{Retry: linear(0)}).SetupWithManager)
		w.create("a", func(p *probe.Probe) { p.Finalizers = []string{"example.org/theirs"} })
		w.await("a", "to say why", func(p *probe.Probe) bool { return p.Status.Message == errBroken.Error() })
		mu.Lock()
		fail = false
		mu.Unlock()
		w.await("a", "to be Ready", ready)
		w.delete()
		w.await("a", "to say that it is deleted", func(p *probe.Probe) bool { return p.Status.State == "Terminating" && !ready(p) })
	})
}

// TestFromResult: what an ordinary reconciler returns, as an outcome.
func TestFromResult(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", errBroken)
	for _, tc := range []struct {
		result reconcile.Result
		err    error
		want   string
	}{
		{reconcile.Result{}, nil, "Done()"},
		{reconcile.Result{RequeueAfter: time.Minute}, nil, "After(1m0s)"},
		{reconcile.Result{RequeueAfter: time.Minute, Priority: new(-1)}, nil, "After(1m0s).LowPriority()"},
		{reconcile.Result{Requeue: true}, nil, "Again()"}, //nolint:staticcheck // existing reconcilers use it
		{reconcile.Result{RequeueAfter: time.Minute}, errBroken, "Fail(the pump is broken)"},
		{reconcile.Result{}, reconcile.TerminalError(errBroken), "Terminal(TerminalError, the pump is broken)"},
		{reconcile.Result{}, fmt.Errorf("wrapped: %w", reconcile.TerminalError(errBroken)), "Terminal(TerminalError, wrapped: terminal error: the pump is broken)"},
	} {
		if got := loop.FromResult(tc.result, tc.err).String(); got != tc.want {
			t.Errorf("FromResult(%+v, %v) = %s, want %s", tc.result, tc.err, got, tc.want)
		}
	}
	if o := loop.FromResult(reconcile.Result{}, conflict); !errors.Is(o.Err(), conflict) {
		t.Errorf("a conflict is %s", o)
	}
}
