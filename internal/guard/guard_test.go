package guard_test

import (
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// TestAside: whatever the code does, the caller goes on and can tell what happened.
func TestAside(t *testing.T) {
	called := false
	if err := guard.Aside("the driver", "Create", func() { called = true }); err != nil || !called {
		t.Errorf("code that returns: %v, called %t", err, called)
	}
	err := guard.Aside("the driver", "Create", func() { panic("boom") })
	if want := "the driver panicked in Create: boom; the operator's log has the stack"; err == nil || err.Error() != want {
		t.Errorf("a panic: %v, want %q", err, want)
	}
	if !strings.Contains(guard.Stack(err), "TestAside") {
		t.Errorf("the stack does not show where it panicked: %q", guard.Stack(err))
	}
	err = guard.Aside("the driver", "Create", runtime.Goexit)
	if want := "the driver called runtime.Goexit in Create, which ends the goroutine; return instead"; err == nil || err.Error() != want {
		t.Errorf("an exit: %v, want %q", err, want)
	}
	if guard.Stack(err) != "" {
		t.Errorf("an exit has a stack: %q", guard.Stack(err))
	}
}

// returner always returns.
type returner struct{}

func (returner) AlwaysReturns() {}

// TestRun: only code that may end its goroutine gets one of its own, and no panic gets through.
func TestRun(t *testing.T) {
	here := func() string {
		stack := make([]byte, 1<<16)
		return string(stack[:runtime.Stack(stack, false)])
	}
	for name, by := range map[string]any{"an author": nil, "a returner": returner{}} {
		on := ""
		if err := guard.Run(by, "the driver", "Create", func() { on = here() }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if same := strings.Contains(on, "TestRun("); same != (by != nil) {
			t.Errorf("%s ran on the goroutine of the caller: %t\n%s", name, same, on)
		}
		err := guard.Run(by, "the driver", "Create", func() { panic("boom") })
		if want := "the driver panicked in Create: boom; the operator's log has the stack"; err == nil || err.Error() != want {
			t.Errorf("%s: a panic: %v, want %q", name, err, want)
		}
	}
	if err := guard.Run(nil, "the driver", "Create", runtime.Goexit); err == nil {
		t.Error("an exit is not noticed")
	}
}

// TestCall: what the code returns is returned, and a panic is an error.
func TestCall(t *testing.T) {
	refused := errors.New("refused")
	if got, err := guard.Call("the driver", "Name", func() (int, error) { return 3, refused }); got != 3 || !errors.Is(err, refused) {
		t.Errorf("got %d, %v", got, err)
	}
	_, err := guard.Call("the driver", "Name", func() (int, error) { panic(refused) })
	if p, ok := errors.AsType[*guard.PanicError](err); !ok || !reflect.DeepEqual(p.Value, refused) {
		t.Errorf("a panic: %v", err)
	}
}
