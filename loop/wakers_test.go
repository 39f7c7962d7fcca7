package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trigger"
)

// TestWaker: something outside the cluster happens.
func TestWaker(t *testing.T) {
	t.Parallel()
	var waker trigger.Waker
	waker.All(0) // nobody is there yet
	a := newAuthor(nil)
	w := newControllerTest(t, a, options{
		MaxInterval: -1,
		Sources:     []trigger.Source[*probe.Probe]{trigger.External[*probe.Probe]{Waker: &waker}},
	})
	names := []string{"a", "b", "c"}
	for _, n := range names {
		w.create(n)
		w.await(n, "to be Ready", ready)
	}
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: w.namespace, Name: name}
	}
	w.drain(a)
	woken := func(n int) (got []string) {
		for range n {
			got = append(got, w.next(a).Name)
		}
		slices.Sort(got)
		return got
	}

	t.Run("002-55 one call for the object of a key, none and no error for a key of nobody", func(t *testing.T) {
		waker.Objects(key("nobody"))
		waker.Objects(key("b"))
		waker.Objects()
		if got := woken(1); !slices.Equal(got, []string{"b"}) {
			t.Errorf("woken: %v", got)
		}
		waker.Objects(key("c"), key("a"))
		if got := woken(2); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("woken: %v", got)
		}
		w.quiet(a, 200*time.Millisecond)
	})
	t.Run("every object, once each", func(t *testing.T) {
		waker.All(50 * time.Millisecond)
		if got := woken(3); !slices.Equal(got, names) {
			t.Errorf("woken: %v", got)
		}
		w.quiet(a, 200*time.Millisecond)
	})
}

// TestWakerAndRetries: what is woken while it fails comes at once, and goes on with its own
// back-off.
func TestWakerAndRetries(t *testing.T) {
	t.Parallel()
	var waker trigger.Waker
	a := newAuthor(func(context.Context, *run) loop.Outcome { return loop.Fail(errors.New("away")) })
	w := newControllerTest(t, a, options{
		Retry:   loop.Retry{Initial: time.Hour, Max: time.Hour},
		Sources: []trigger.Source[*probe.Probe]{trigger.External[*probe.Probe]{Waker: &waker}},
	})
	w.create("a")
	if first := w.next(a); first.Attempt != 0 {
		t.Fatalf("the first pass is attempt %d", first.Attempt)
	}
	for range 3 {
		waker.All(0)
		if again := w.next(a); again.Attempt != 1 {
			t.Errorf("attempt %d; want 1: what woke it was no retry", again.Attempt)
		}
	}
	w.quiet(a, 200*time.Millisecond)
}

// hoarder would clean up, if its method were that of a [loop.Cleaner].
type hoarder struct{ *author }

func (hoarder) Cleanup(context.Context, *loop.Run[*probe.Probe]) error { return nil }

// TestRefused: a controller that could not do what its author meant is not set up.
func TestRefused(t *testing.T) {
	t.Parallel()
	mgr, err := ctrl.NewManager(testenv.Start(t), ctrl.Options{
		Scheme: scheme(t), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why, want  string
		controller *loop.Controller[*probe.Probe]
	}{
		{
			"a source without a Waker can do nothing", "new(trigger.Waker)",
			loop.New(newAuthor(nil), options{Sources: []trigger.Source[*probe.Probe]{trigger.External[*probe.Probe]{}}}),
		},
		{
			"a Cleanup that is never called leaks", "Cleanup(context.Context, *loop.Run[",
			loop.New(hoarder{newAuthor(nil)}, options{}),
		},
		{"options made of others that do not fit", "unfit", loop.New(newAuthor(nil), options{Problem: errors.New("unfit")})},
	} {
		if err := test.controller.SetupWithManager(mgr); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}
