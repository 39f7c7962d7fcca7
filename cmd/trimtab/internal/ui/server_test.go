package ui_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/ui"
)

// dashboard is a server with one action, which notes what it was done to.
func dashboard(t *testing.T) (at *url.URL, key string, done *[]string) {
	t.Helper()
	done = &[]string{}
	s := ui.New(ui.Options{Actions: []ui.Action{{
		Verb:    "poke",
		Command: func(model.Ref) string { return "poke" },
		For:     func(context.Context, *model.Cluster, model.Object) ([]string, bool) { return nil, true },
		Do: func(_ context.Context, r model.Ref, uid types.UID, agreed func([]string) error) error {
			if err := agreed(nil); err != nil {
				return err
			}
			if r.Name == "held" {
				return errors.New("somebody holds it")
			}
			*done = append(*done, r.String()+" "+string(uid))
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
	_, key, found := strings.Cut(s.URL(server.Listener.Addr()), "/#key=")
	if !found || len(key) < 20 {
		t.Fatalf("the address is %q, want one with a key behind the sign #, which browsers do not send", s.URL(server.Listener.Addr()))
	}
	return at, key, done
}

// TestGuard: who has not been given the address gets nothing, and a page of another site cannot have anything done.
func TestGuard(t *testing.T) {
	t.Parallel()
	at, key, done := dashboard(t)
	// shown is the name of no effects.
	const poke = "/api/act?verb=poke&shown=e3b0c44298fc1c14&uid=u1&apiVersion=v1&kind=Thing&namespace=n&name="
	tests := map[string]struct {
		why    string
		method string
		path   string
		host   string
		key    string
		code   int
		says   string
	}{
		"page":           {"it is the same for everybody, and asks for the key", "GET", "/", "", "", http.StatusOK, "<title>trimtab</title>"},
		"no key, data":   {"the data is what is worth protecting", "GET", "/api/attention", "", "", http.StatusForbidden, "has a key"},
		"wrong key":      {"it is not to be guessed", "GET", "/api/attention", "", "A", http.StatusForbidden, "has a key"},
		"key elsewhere":  {"addresses are written into logs", "GET", "/api/attention?key=" + key, "", "", http.StatusForbidden, "has a key"},
		"no key, action": {"a form of another site sends no header", "POST", poke + "a", "", "", http.StatusForbidden, "has a key"},
		"other name":     {"a name of another site may be made to lead here", "GET", "/", "example.org", key, http.StatusMisdirectedRequest, "is called " + at.Host},
		"get":            {"a picture of another site gets", "GET", poke + "a", "", key, http.StatusNotFound, ""},
		"no such action": {"nothing else can be done", "POST", strings.Replace(poke, "poke", "drop", 1) + "a", "", key, http.StatusBadRequest, "there is no action drop"},
		"no name":        {"an action is about an object", "POST", poke, "", key, http.StatusBadRequest, "name an object by"},
		"no UID":         {"and about one alone", "POST", strings.Replace(poke, "uid=u1&", "", 1) + "a", "", key, http.StatusBadRequest, "name the object by its uid, too"},
		"not shown":      {"nobody has agreed to that", "POST", strings.Replace(poke, "e3b0", "0000", 1) + "a", "", key, http.StatusConflict, "look at it again"},
		"refused":        {"the page says why", "POST", poke + "held", "", key, http.StatusConflict, "somebody holds it"},
		"action":         {"it is the owner's", "POST", poke + "b", "", key, http.StatusNoContent, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, at.String()+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = tt.host
			if tt.key != "" {
				r.Header.Set("X-Trimtab-Key", tt.key)
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != tt.code || !strings.Contains(string(body), tt.says) {
				t.Errorf("%d %q, %v; want %d with %q: %s", answer.StatusCode, body, err, tt.code, tt.says, tt.why)
			}
			if csp := answer.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
				t.Errorf("the policy for content is %q", csp)
			}
			if len(answer.Cookies()) > 0 {
				t.Errorf("it sets the cookies %v, which browsers send to other ports, too", answer.Cookies())
			}
		})
	}
	if got := strings.Join(*done, " "); got != "Thing/b u1" {
		t.Errorf("done: %q, want Thing/b alone", got)
	}
}

// TestPort80: browsers leave out the port 80 of an address.
func TestPort80(t *testing.T) {
	t.Parallel()
	handler := ui.New(ui.Options{}).Handler(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80})
	for host, want := range map[string]int{"127.0.0.1": http.StatusOK, "127.0.0.1:80": http.StatusOK, "127.0.0.2": http.StatusMisdirectedRequest} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != want {
			t.Errorf("host %s: %d, want %d", host, w.Code, want)
		}
	}
}
