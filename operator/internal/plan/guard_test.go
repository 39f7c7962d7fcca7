package plan

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGuard: no request reaches the API server that would change something.
func TestGuard(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		why          string
		method, path string
		body         string
		sent         string // what the API server gets; empty if nothing
		code         int
	}{
		"create": {
			why: "the query of a create says that it is a dry run", method: "POST", path: "/api/v1/namespaces/a/configmaps", body: `{"metadata":{"name":"b"}}`,
			sent: "POST ?dryRun=All ", code: 200,
		},
		"delete with options": {
			why:    "the API server ignores the query of a delete that has a body",
			method: "DELETE", path: "/api/v1/namespaces/a/configmaps/b", body: `{"preconditions":{"uid":"c"}}`, sent: `DELETE ?dryRun=All {"dryRun":["All"],"preconditions":{"uid":"c"}}`, code: 200,
		},
		"delete": {
			why: "a delete without options gets some", method: "DELETE", path: "/apis/apps/v1/namespaces/a/deployments/b",
			sent: `DELETE ?dryRun=All {"apiVersion":"v1","dryRun":["All"],"kind":"DeleteOptions"}`, code: 200,
		},
		"delete with options in another form": {
			why: "what cannot be made a dry run is not sent", method: "DELETE", path: "/api/v1/namespaces/a/configmaps/b", body: "k8s\x00\x0a", code: 403,
		},
		"command in a pod":   {why: "there is no dry run of a command", method: "POST", path: "/api/v1/namespaces/a/pods/b/exec", code: 403},
		"websocket to a pod": {why: "a command in a pod runs also if it is asked for by a GET", method: "GET", path: "/api/v1/namespaces/a/pods/b/exec", code: 403},
		"token":              {why: "a token is a credential that would stay valid", method: "POST", path: "/api/v1/namespaces/a/serviceaccounts/b/token", body: `{}`, code: 403},
		"no resource":        {why: "nobody knows what it does", method: "POST", path: "/elsewhere", code: 403},
		"event":              {why: "an event is no change that anybody asks for", method: "POST", path: "/apis/events.k8s.io/v1/namespaces/a/events", body: `{}`, code: 201},
		"question": {
			why: "a question about permissions changes nothing", method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body: `{}`,
			sent: "POST ? {}", code: 200,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method != http.MethodGet {
					got = append(got, fmt.Sprintf("%s ?%s %s", r.Method, r.URL.RawQuery, body))
				}
				_, _ = w.Write([]byte(`{}`))
			}))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := newGuard(&log{}).wrap(http.DefaultTransport).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if answer.StatusCode != tt.code {
				t.Errorf("%s: status %d, want %d", tt.why, answer.StatusCode, tt.code)
			}
			if tt.sent == "" && len(got) > 0 || tt.sent != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.sent)) {
				t.Errorf("%s: the API server got %q, want %q", tt.why, got, tt.sent)
			}
		})
	}
}

// TestGuardOfSecrets: an error about a Secret may quote its values, and the path of an API server may have a beginning of its own.
func TestGuardOfSecrets(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != "application/json" {
			t.Errorf("%s wants %q; differences are those of whole objects", r.Method, accept)
		}
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","reason":"Invalid","message":"expected string, got 5432","details":{"causes":[{"message":"5432"}]}}`))
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL+"/k8s/clusters/c/api/v1/namespaces/a/secrets/b", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	l := &log{}
	g := newGuard(l)
	g.base = "/k8s/clusters/c"
	answer, err := g.wrap(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusUnprocessableEntity || len(l.steps) != 1 {
		t.Fatalf("%s, %v, steps %v", answer.Status, err, l.steps)
	}
	for what, text := range map[string]string{"the pass": string(body), "the plan": l.steps[0].Error} {
		if strings.Contains(text, "5432") || !strings.Contains(text, "refuses the Secret (Invalid)") {
			t.Errorf("%s reads %q", what, text)
		}
	}
}
