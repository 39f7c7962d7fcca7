package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
)

// gate is a way around for the operator's requests, on which one write to a Folder is held.
type gate struct {
	operatortest.Account
	// held is closed once the write is there.
	held chan struct{}
	// open, closed by the test, lets it go on.
	open chan struct{}
}

// gate holds the first write for which holds is true, given its path and its number.
func (ot *operatorTest) gate(holds func(path string, number int) bool) gate {
	ot.t.Helper()
	target, err := url.Parse(ot.cfg.Host)
	ot.do(err)
	own, err := clientcmd.BuildConfigFromFlags("", ot.account.Kubeconfig)
	ot.do(err)
	transport, err := rest.TransportFor(own)
	ot.do(err)
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches are answered bit by bit
		// Who asked is dead.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g := gate{ot.account, make(chan struct{}), make(chan struct{})}
	writes := make(chan int, 1) // how many there were, and the right to be one
	writes <- 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/folders/") {
			n := 1 + <-writes
			defer func() { writes <- n }()
			if holds(r.URL.Path, n) {
				close(g.held)
				select {
				case <-g.open:
				case <-ot.t.Context().Done():
					panic(http.ErrAbortHandler)
				}
			}
		}
		proxy.ServeHTTP(rw, r)
	}))
	ot.t.Cleanup(server.Close) // the test's context has ended by then
	g.Kubeconfig = operatortest.Kubeconfig(ot.t, &rest.Config{Host: server.URL}, ot.namespace)
	return g
}

// await waits until the write is held.
func (g gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.held:
	case <-time.After(poll.Patience):
		t.Fatal("the operator does not come to the write that is to be held")
	}
}
