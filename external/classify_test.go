package external

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

type byText struct{}

func (byText) Classify(err error) Class {
	if err.Error() == "out of stock" {
		return ClassTerminal
	}
	return ClassUnknown
}

func TestClassify(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	tests := map[string]struct {
		why          string
		err          error
		read, change decide.Class
	}{
		"said by its maker":       {"", Terminal(errors.New("x")), decide.ClassTerminal, decide.ClassTerminal},
		"said, wrapped":           {"", fmt.Errorf("create: %w", Conflict(errors.New("x"))), decide.ClassConflict, decide.ClassConflict},
		"said, before the driver": {"", Transient(errors.New("out of stock")), decide.ClassTransient, decide.ClassTransient},
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
			got := []decide.Class{classify(test.err, byText{}, false).class, classify(test.err, byText{}, true).class}
			if diff := cmp.Diff([]decide.Class{test.read, test.change}, got); diff != "" {
				t.Errorf("%s: of a read, of a change (-want +got):\n%s", test.why, diff)
			}
		})
	}
}

func TestClassifyDetails(t *testing.T) {
	if got := classify(httpError{code: 429, after: 3 * time.Second}, nil, true).after; got != 3*time.Second {
		t.Errorf("Retry-After %s", got)
	}
	if got := classify(fmt.Errorf("x: %w", Throttled(errors.New("slow"), time.Minute)), nil, true).after; got != time.Minute {
		t.Errorf("after %s", got)
	}
	if !classify(context.DeadlineExceeded, nil, true).timeout || classify(Invalid(context.DeadlineExceeded), nil, true).timeout {
		t.Error("timeout")
	}
	if got := Invalid(errors.New("too large"), "spec.replicas", "spec.size").Error(); got != "spec.replicas, spec.size: too large" {
		t.Errorf("text %q", got)
	}
	for _, e := range []error{Throttled(nil, 0), Denied(nil), Invalid(nil), Conflict(nil), Transient(nil), Terminal(nil), NotReady(nil, 0), Ambiguous(nil)} {
		if e != nil {
			t.Errorf("%v out of no error", e)
		}
	}
}
