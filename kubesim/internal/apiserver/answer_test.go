package apiserver

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Clients write the options of a delete in the group of its object.
func TestPreconditions(t *testing.T) {
	for name, test := range map[string]struct {
		why, body, uid, resourceVersion string
	}{
		"built-in": {
			why:  "clients of built-in kinds use v1",
			body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u","resourceVersion":"7"}}`, uid: "u", resourceVersion: "7",
		},
		"custom": {
			why:  "clients of custom kinds use their group, which no codec here knows",
			body: `{"kind":"DeleteOptions","apiVersion":"corpus.example.com/v1","preconditions":{"uid":"u"}}`, uid: "u",
		},
		"none":      {why: "most have none", body: `{"kind":"DeleteOptions","apiVersion":"v1"}`},
		"empty":     {why: "no options at all"},
		"malformed": {why: "the server will refuse it", body: `{"preconditions":7}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://x", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			uid, rv := Preconditions(r)
			if uid != test.uid || rv != test.resourceVersion {
				t.Errorf("%s: preconditions are %q and %q; want %q and %q", test.why, uid, rv, test.uid, test.resourceVersion)
			}
			if left, err := io.ReadAll(r.Body); err != nil || string(left) != test.body {
				t.Errorf("the request's body is now %q, %v; want it unchanged", left, err)
			}
		})
	}
}
