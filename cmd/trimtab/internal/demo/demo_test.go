package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

func TestExplained(t *testing.T) {
	ended := endedError{errors.New("the control plane ended: signal: killed")}
	late := errors.New("not verified within 1m0s")
	request := func(why error) error { return &url.Error{Op: "Get", URL: "https://127.0.0.1", Err: why} }
	reset := errors.New("connection reset by peer")
	tests := map[string]struct {
		why        string
		cause, err error
		want       string
	}{
		"nothing failed":               {"the end of the context is not the step's", ended, nil, "<nil>"},
		"nothing ended":                {"the step's own", nil, reset, "connection reset by peer"},
		"a request was cut off":        {"only the end is worth telling", ended, request(reset), ended.Error()},
		"a request tells of the cause": {"still only the end", ended, fmt.Errorf("%w; its state is unknown", request(ended)), ended.Error()},
		"too late":                     {"what was waited for matters", late, reset, "not verified within 1m0s: connection reset by peer"},
		"too late, in its own words":   {"said once", late, fmt.Errorf("wait: %w", late), "wait: not verified within 1m0s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tc.cause != nil {
				cancel(tc.cause)
			}
			if got := fmt.Sprint(explained(ctx, tc.err)); got != tc.want {
				t.Errorf("%s: %q; want %q", tc.why, got, tc.want)
			}
		})
	}
}

// TestExplainedLater: an answer that was cut off is an error before the end of the process is noticed.
func TestExplainedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		ended := endedError{errors.New("the control plane ended: signal: killed")}
		time.AfterFunc(noticedWithin/2, func() { cancel(ended) })
		if err := explained(ctx, fmt.Errorf("read the answer: %w", io.ErrUnexpectedEOF)); !errors.Is(err, ended) {
			t.Errorf("got %q, want %q", err, ended)
		}
	})
}
