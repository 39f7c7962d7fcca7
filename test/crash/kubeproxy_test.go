package crash

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// kubeProxy serves the API of cfg on plain HTTP on loopback; writes pass through g.
func kubeProxy(t *testing.T, cfg *rest.Config, g *gate) string {
	t.Helper()
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isWrite(r) {
			proxy.ServeHTTP(w, r)
			return
		}
		n, pass := g.enter(describe(r))
		if !pass {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if !g.leave(n) {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // the operator may be gone
	}))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	return server.URL
}

// isWrite tells what the sweep counts. Events are announcements, leases and reviews are
// none of the operator's work on its objects.
func isWrite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	for _, other := range []string{"/events", "/leases", "reviews"} {
		if strings.Contains(r.URL.Path, other) {
			return false
		}
	}
	return true
}

// describe names the object without the namespace, which differs from run to run.
func describe(r *http.Request) string {
	_, object, _ := strings.Cut(r.URL.Path, "/namespaces/")
	_, object, _ = strings.Cut(object, "/")
	return "Kubernetes " + r.Method + " " + object
}
