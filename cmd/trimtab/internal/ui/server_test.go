package ui_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/ui"
)

// dashboard is a server with one action, which notes what it was done to.
func dashboard(t *testing.T) (at *url.URL, open string, done *[]string) {
	t.Helper()
	done = &[]string{}
	s := ui.New(ui.Options{Actions: []ui.Action{{
		Verb:    "poke",
		Command: func(model.Ref) string { return "poke" },
		For:     func(context.Context, model.Object) bool { return true },
		Do: func(_ context.Context, r model.Ref) error {
			if r.Name == "held" {
				return errors.New("somebody holds it")
			}
			*done = append(*done, r.String())
			return nil
		},
	}}})
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = s.Handler(server.Listener.Addr())
	server.Start()
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at, s.URL(server.Listener.Addr()), done
}

// TestGuard: who has not been given the address gets nothing, and a page of another site cannot have anything done.
func TestGuard(t *testing.T) {
	t.Parallel()
	at, open, done := dashboard(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	owner := &http.Client{Jar: jar}
	first, err := http.NewRequestWithContext(t.Context(), http.MethodGet, open, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := owner.Do(first)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.RawQuery != "" {
		t.Fatalf("the address that is printed leads to %d at %s, want the page at an address without the key", answer.StatusCode, answer.Request.URL)
	}
	if csp := answer.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("the policy for content is %q", csp)
	}
	const poke = "/api/act?verb=poke&apiVersion=v1&kind=Thing&namespace=n&name="
	tests := map[string]struct {
		why    string
		client *http.Client
		method string
		path   string
		host   string
		header bool
		code   int
		says   string
	}{
		"no key":         {"other users of the machine reach the port, too", &http.Client{}, "GET", "/", "", false, http.StatusForbidden, "has a key"},
		"wrong key":      {"it is not to be guessed", &http.Client{}, "GET", "/?key=A", "", false, http.StatusForbidden, "has a key"},
		"no key, data":   {"the data is what is worth protecting", &http.Client{}, "GET", "/api/attention", "", false, http.StatusForbidden, "has a key"},
		"other name":     {"a name of another site may be made to lead here", owner, "GET", "/", "example.org", false, http.StatusMisdirectedRequest, "is called " + at.Host},
		"no header":      {"a form of another site sends none", owner, "POST", poke + "a", "", false, http.StatusForbidden, "X-Trimtab-Key is missing"},
		"get":            {"a picture of another site gets", owner, "GET", poke + "a", "", true, http.StatusNotFound, ""},
		"no such action": {"nothing else can be done", owner, "POST", strings.Replace(poke, "poke", "drop", 1) + "a", "", true, http.StatusBadRequest, "there is no action drop"},
		"no name":        {"an action is about an object", owner, "POST", poke, "", true, http.StatusBadRequest, "name an object by"},
		"refused":        {"the page says why", owner, "POST", poke + "held", "", true, http.StatusConflict, "somebody holds it"},
		"action":         {"it is the owner's", owner, "POST", poke + "b", "", true, http.StatusNoContent, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, at.String()+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			if tt.header {
				r.Header.Set("X-Trimtab-Key", "1")
			}
			answer, err := tt.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != tt.code || !strings.Contains(string(body), tt.says) {
				t.Errorf("%d %q, %v; want %d with %q: %s", answer.StatusCode, body, err, tt.code, tt.says, tt.why)
			}
		})
	}
	if got := strings.Join(*done, " "); got != "Thing/b" {
		t.Errorf("done: %q, want Thing/b alone", got)
	}
}
