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

// off is the address of a server that is not wanted.
const off = "0"

// listen binds address, which --flag names. Nil means that it is switched off.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == off {
		return nil, nil //nolint:nilnil // documented above
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another process uses %s; choose another with --%s, or 0 for none", address, flag)
	case err != nil:
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return l, nil
}

// listenLoopback is listen for what must not be reachable from other machines.
func listenLoopback(ctx context.Context, flag, address string) (net.Listener, error) {
	if address == off {
		return nil, nil //nolint:nilnil // as listen
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("--%s %s is not on loopback; use 127.0.0.1 and reach it from elsewhere with kubectl port-forward", flag, address)
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

// onlyLocal refuses requests whose Host is a name from elsewhere: a web page that points
// its own name at this machine must not read what is served on loopback.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u := (&url.URL{Host: r.Host}); !isLoopback(u.Hostname()) {
			http.Error(w, "only for this machine: ask for localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// servers are the process's HTTP servers. They answer from before the manager starts until
// after it has stopped.
type servers struct {
	running []*http.Server
	wg      sync.WaitGroup
}

// serve answers requests on l with h until [servers.stop]. A nil l is skipped.
func (s *servers) serve(l net.Listener, h http.Handler) {
	if l == nil {
		return
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	s.running = append(s.running, srv)
	s.wg.Go(func() { _ = srv.Serve(l) }) // it ends with ErrServerClosed
}

// stop gives requests under way a moment and ends the servers.
func (s *servers) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
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
