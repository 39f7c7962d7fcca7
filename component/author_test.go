package component

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// stuckIn calls a hook of a component that returns when the channel is closed.
func (a *authors) stuckIn(t *testing.T, name string, leave <-chan struct{}) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return a.call(ctx, componentNamed(name), "pre-delete hook", func() error { <-leave; return nil })
}

func componentNamed(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
}

// TestAbandonedCall: a call that does not return ends its pass, and nothing more is called for its component
// until it does. Other components are not affected, and the component is reconciled when it returns.
func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var woken []types.NamespacedName
		a := authors{returned: func(names ...types.NamespacedName) { woken = append(woken, names...) }}
		leave, begin := make(chan struct{}), time.Now()
		err := a.stuckIn(t, "a", leave)
		if took := time.Since(begin); !isAbandoned(err) || took != time.Minute+overtime {
			t.Errorf("after %s: %v", took, err)
		}
		if want := "the pre-delete hook has not returned after the deadline of the pass"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q in it", err, want)
		}
		again := a.call(t.Context(), componentNamed("a"), "renderer", func() error { t.Error("called meanwhile"); return nil })
		if again == nil || again.Error() != err.Error() {
			t.Errorf("the next pass says %v, want the same", again)
		}
		if err := a.call(t.Context(), componentNamed("b"), "renderer", func() error { return nil }); err != nil {
			t.Errorf("another component: %v", err)
		}
		close(leave)
		synctest.Wait()
		if want := "[shop/a]"; fmt.Sprint(woken) != want {
			t.Errorf("woken: %v, want %s", woken, want)
		}
		if err := a.call(t.Context(), componentNamed("a"), "renderer", func() error { return nil }); err != nil {
			t.Errorf("after it returned: %v", err)
		}
	})
}

// TestMostAbandonedCalls: the number of calls that have not returned is bounded.
func TestMostAbandonedCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a authors
		leave := make(chan struct{})
		for i := range maxAbandoned {
			_ = a.stuckIn(t, fmt.Sprint(i), leave)
		}
		err := a.call(t.Context(), componentNamed("more"), "renderer", func() error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("renderers and hooks of %d components have not returned", maxAbandoned)) {
			t.Errorf("one more: %v", err)
		}
		close(leave)
		synctest.Wait()
		if err := a.call(t.Context(), componentNamed("more"), "renderer", func() error { return nil }); err != nil {
			t.Errorf("after they returned: %v", err)
		}
	})
}

// TestLateCall: a call that obeys its context a little late is not abandoned, and its error counts.
func TestLateCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a authors
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := a.call(ctx, componentNamed("a"), "renderer", func() error {
			<-ctx.Done()
			<-time.After(overtime / 2)
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || isAbandoned(err) {
			t.Errorf("%v, want the error of the context", err)
		}
	})
}

// TestCallThatDoesNotReturn: a panic and the end of the goroutine are errors.
func TestCallThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	var a authors
	err := a.call(t.Context(), componentNamed("a"), "renderer", func() error { panic("boom") })
	if want := "the operator panicked in the renderer: boom; the operator's log has the stack"; err == nil || err.Error() != want {
		t.Errorf("a panic: %v, want %q", err, want)
	}
	if !strings.Contains(guard.Stack(err), "author_test.go") {
		t.Errorf("the stack does not show where: %s", guard.Stack(err))
	}
	err = a.call(t.Context(), componentNamed("a"), "renderer", func() error { runtime.Goexit(); return nil })
	if want := "the operator called runtime.Goexit in the renderer, which ends the goroutine; return instead"; err == nil || err.Error() != want {
		t.Errorf("an exit: %v, want %q", err, want)
	}
}
