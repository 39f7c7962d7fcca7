package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// off is the address that turns a server off.
const off = "0"

// listen binds address, the value of --flag. It returns nil if the server is turned off.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == off {
		return nil, nil //nolint:nilnil // documented above
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("address %s is in use; choose another with --%s, or 0 for none", address, flag)
	case err != nil:
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return l, nil
}

// listenLoopback is like listen, but for servers that must not be reachable from other machines.
func listenLoopback(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == off {
		return nil, nil //nolint:nilnil // as listen
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("--%s %s is not on loopback; use 127.0.0.1, and kubectl port-forward to reach it from elsewhere", flag, address)
	}
	return listen(ctx, flag, address)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// onlyLocal refuses requests with a foreign host name: a web page whose name resolves to this
// machine must not be able to read what is served on loopback.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := (&url.URL{Host: r.Host}); !isLoopback(u.Hostname()) {
			http.Error(w, "only for this machine: use localhost as the host name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servers are the HTTP servers of the process. They run from before the manager starts until after
// it has stopped.
type servers struct {
	running []*http.Server
	ending  []context.CancelFunc // called by stop
	wg      sync.WaitGroup
}

// serve serves h on l until [servers.stop] is called. It does nothing if l is nil.
func (s *servers) serve(l net.Listener, h http.Handler) {
	if l == nil {
		return
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	s.running = append(s.running, srv)
	s.wg.Go(func() { _ = srv.Serve(l) }) // it returns ErrServerClosed
}

// stop gives running requests a moment to finish and stops the servers.
func (s *servers) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, end := range s.ending {
		end()
	}
	for _, srv := range s.running {
		if err := srv.Shutdown(ctx); err != nil {
			_ = srv.Close()
		}
	}
	s.wg.Wait()
}

func addressOf(l net.Listener) string {
	if l == nil {
		return "off"
	}
	return l.Addr().String()
}
