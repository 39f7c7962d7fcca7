//go:build !race

package fidelity

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// TestBroken breaks the simulation in small ways, each of which the sequences must notice.
// The whole one stands for the real server.
func TestBroken(t *testing.T) {
	tests := map[string]struct {
		why      string
		old, new string // of equal length, in what the server sends
	}{
		"reason":    {"an error of another class", `"reason":"Conflict"`, `"reason":"NotFound"`},
		"message":   {"an error in other words", "already exists", "already EXISTS"},
		"default":   {"another default", `"owner":"nobody"`, `"owner":"Nobody"`},
		"count":     {"a generation that is not counted up", `"generation":2`, `"generation":1`},
		"finalizer": {"another finalizer", `f.test/b`, `f.test/x`},
		"owner":     {"an owner that does not block", `"blockOwnerDeletion":true`, `"BlockOwnerDeletion":true`},
		"manager":   {"a field that nobody owns", `"f:labels"`, `"f:LABELS"`},
		"event":     {"an event of another type", `"type":"MODIFIED"`, `"type":"modified"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pair{b: simulated(t, "whole", namespace("w", 0), kubesim.Options{}, nil)}
			p.a = simulated(t, "broken", namespace("b", 0), kubesim.Options{}, func(next http.RoundTripper) http.RoundTripper {
				return broken{next, []byte(tc.old), []byte(tc.new)}
			})
			for _, s := range slices.Backward(sequences(100)) { // those with owners first
				diff, err := p.play(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if diff != "" {
					return
				}
			}
			t.Errorf("100 sequences did not notice %s", tc.why)
		})
	}
}

// broken replaces one text by another in all that a server sends.
type broken struct {
	next     http.RoundTripper
	old, new []byte
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = brokenBody{resp.Body, b}
	}
	return resp, err
}

type brokenBody struct {
	io.ReadCloser
	by broken
}

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], b.by.old, b.by.new))
	return n, err
}
