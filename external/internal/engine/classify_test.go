package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/guard"
)

type httpError struct {
	code  int
	after time.Duration
}

func (e httpError) Error() string             { return fmt.Sprintf("%d %s", e.code, http.StatusText(e.code)) }
func (e httpError) StatusCode() int           { return e.code }
func (e httpError) RetryAfter() time.Duration { return e.after }

// saidError is an error that carries its own class.
type saidError struct {
	error
	class decide.Class
	after time.Duration
}

// ofDriver returns the rules of errors that carry a class, and of a driver that knows one text.
func ofDriver() Errors {
	return Errors{
		Declared: func(err error) (decide.Class, time.Duration, bool) {
			e, said := errors.AsType[saidError](err)
			return e.class, e.after, said
		},
		Classify: func(err error) decide.Class {
			if err.Error() == "out of stock" {
				return decide.ClassTerminal
			}
			return decide.ClassUnknown
		},
	}
}

func TestClassify(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	tests := map[string]struct {
		why          string
		err          error
		read, change decide.Class
	}{
		"said by its maker":       {"", saidError{errors.New("x"), decide.ClassTerminal, 0}, decide.ClassTerminal, decide.ClassTerminal},
		"said, wrapped":           {"", fmt.Errorf("create: %w", saidError{errors.New("x"), decide.ClassConflict, 0}), decide.ClassConflict, decide.ClassConflict},
		"said, before the driver": {"", saidError{errors.New("out of stock"), decide.ClassTransient, 0}, decide.ClassTransient, decide.ClassTransient},
		"known to the driver":     {"", errors.New("out of stock"), decide.ClassTerminal, decide.ClassTerminal},
		"unknown":                 {"trying again may help", errors.New("hm"), decide.ClassTransient, decide.ClassTransient},
		"400":                     {"", httpError{code: 400}, decide.ClassInvalid, decide.ClassInvalid},
		"401":                     {"", httpError{code: 401}, decide.ClassDenied, decide.ClassDenied},
		"403":                     {"", httpError{code: 403}, decide.ClassDenied, decide.ClassDenied},
		"404":                     {"what is missing may come", httpError{code: 404}, decide.ClassTransient, decide.ClassTransient},
		"409":                     {"", httpError{code: 409}, decide.ClassConflict, decide.ClassConflict},
		"412":                     {"", httpError{code: 412}, decide.ClassConflict, decide.ClassConflict},
		"422":                     {"", httpError{code: 422}, decide.ClassInvalid, decide.ClassInvalid},
		"429":                     {"", httpError{code: 429}, decide.ClassThrottled, decide.ClassThrottled},
		"500":                     {"", httpError{code: 500}, decide.ClassTransient, decide.ClassTransient},
		"502":                     {"somebody in between gave up", httpError{code: 502}, decide.ClassTransient, decide.ClassAmbiguous},
		"504":                     {"somebody in between gave up", httpError{code: 504}, decide.ClassTransient, decide.ClassAmbiguous},
		"deadline":                {"a request may have had its effect", context.DeadlineExceeded, decide.ClassTransient, decide.ClassAmbiguous},
		"connection reset":        {"a request may have had its effect", reset, decide.ClassTransient, decide.ClassAmbiguous},
		"connection refused":      {"nothing was sent", refused, decide.ClassTransient, decide.ClassTransient},
		"a panic":                 {"", &guard.PanicError{Value: "x"}, decide.ClassTransient, decide.ClassTransient},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			got := []decide.Class{classify(test.err, ofDriver(), false).class, classify(test.err, ofDriver(), true).class}
			if diff := cmp.Diff([]decide.Class{test.read, test.change}, got); diff != "" {
				t.Errorf("%s: of a read, of a change (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestClassifyDetails(t *testing.T) {
	if got := classify(httpError{code: 429, after: 3 * time.Second}, Errors{}, true).after; got != 3*time.Second {
		t.Errorf("Retry-After %s", got)
	}
	if got := classify(fmt.Errorf("x: %w", saidError{errors.New("slow"), decide.ClassThrottled, time.Minute}), ofDriver(), true).after; got != time.Minute {
		t.Errorf("after %s", got)
	}
	invalid := saidError{context.DeadlineExceeded, decide.ClassInvalid, 0}
	if !classify(context.DeadlineExceeded, ofDriver(), true).timeout || classify(invalid, ofDriver(), true).timeout {
		t.Error("timeout")
	}
	if got := classify(fmt.Errorf("look: %w", mistake{errors.New("x")}), ofDriver(), false).class; got != decide.ClassTerminal {
		t.Errorf("a mistake of the driver is %s", got)
	}
}
