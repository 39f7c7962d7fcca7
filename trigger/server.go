package trigger

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// Server is an address at which [Inbound] sources receive requests, in every process whether it leads or not. Pass
// it by pointer.
type Server struct {
	// Address is what to listen at, such as ":9000" or "127.0.0.1:0". Required.
	Address string
	// TLS configures HTTPS. Nil means HTTP.
	TLS *tls.Config

	mu       sync.Mutex
	manager  manager.Manager
	listener net.Listener
	mux      *http.ServeMux
	paths    map[string]bool
}

// Addr returns the address that the server listens at: that of [Server.Address], with the port that was chosen if
// it ends in 0. It is empty before a controller with an [Inbound] source is set up.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// handle serves what is posted to a path, as long as mgr runs.
func (s *Server) handle(mgr manager.Manager, path string, h http.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		if err := s.listen(mgr); err != nil {
			return err
		}
	}
	switch {
	case s.manager != mgr:
		return fmt.Errorf("the trigger.Server at %s belongs to another manager; make one for each", s.Address)
	case s.paths[path]:
		return fmt.Errorf("two sources receive at %s of the trigger.Server at %s; give them different paths", path, s.Address)
	}
	s.paths[path] = true
	_, err := guard.Call("trigger", "Handle", func() (struct{}, error) {
		s.mux.Handle("POST "+path, h)
		return struct{}{}, nil
	})
	if p, is := errors.AsType[*guard.PanicError](err); is {
		return fmt.Errorf("path %s of the trigger.Server at %s is not one of http.ServeMux: %v", path, s.Address, p.Value)
	}
	return nil
}

// mostRequests is how many requests are served at the same time. Each may hold a body.
const mostRequests = 64

// listen binds the address, so that one in use is an error at once, and has mgr serve.
func (s *Server) listen(mgr manager.Manager) error {
	//nolint:forbidigo // wiring happens before there is a context to inherit
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("the trigger.Server cannot listen: %w; choose another Address", err)
	}
	if s.TLS != nil {
		l = tls.NewListener(l, s.TLS)
	}
	s.manager, s.listener, s.mux, s.paths = mgr, l, http.NewServeMux(), map[string]bool{}
	return mgr.Add(&manager.Server{
		Name: "sources", Listener: l, ShutdownTimeout: new(5 * time.Second),
		Server: &http.Server{
			Handler: atMost(mostRequests, s.mux), MaxHeaderBytes: 1 << 16,
			ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		},
	})
}

// atMost refuses requests while n others are served.
func atMost(n int, h http.Handler) http.Handler {
	busy := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case busy <- struct{}{}:
			defer func() { <-busy }()
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests at the same time; try again", http.StatusServiceUnavailable)
		}
	})
}

// Authenticator refuses a request of an [Inbound] source by an error. The sender does not see the error; the log does,
// at level debug.
type Authenticator func(r *http.Request, body []byte) error

// Anyone accepts every request: whoever reaches the address can wake objects and choose what their passes read.
func Anyone() Authenticator { return func(*http.Request, []byte) error { return nil } }

// BearerToken accepts requests with the header "Authorization: Bearer" and the token that secret returns, for example
// operator.Secret's method Read. secret is called for each request. An empty token accepts none.
func BearerToken(secret func() (string, error)) Authenticator {
	return func(r *http.Request, _ []byte) error {
		want, err := nonEmpty(secret)
		if err != nil {
			return err
		}
		got, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !is || subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
			return errors.New("no bearer token, or another one")
		}
		return nil
	}
}

// Signature accepts requests whose header contains the HMAC-SHA256 of the body, in hexadecimal digits and perhaps after
// "sha256=", as the webhooks of GitHub, Gitea and others do. secret returns the key that was shared with the sender. It
// is called for each request. An empty key accepts none. A request that somebody recorded is accepted again.
func Signature(header string, secret func() (string, error)) Authenticator {
	return func(r *http.Request, body []byte) error {
		key, err := nonEmpty(secret)
		if err != nil {
			return err
		}
		got, err := hex.DecodeString(strings.TrimPrefix(r.Header.Get(header), "sha256="))
		if err != nil {
			return fmt.Errorf("the signature in %s is not hexadecimal", header)
		}
		mac := hmac.New(sha256.New, []byte(key))
		_, _ = mac.Write(body) // a hash never fails
		if !hmac.Equal(got, mac.Sum(nil)) {
			return fmt.Errorf("no signature in %s, or that of another key or body", header)
		}
		return nil
	}
}

func nonEmpty(secret func() (string, error)) (string, error) {
	value, err := secret()
	if err == nil && value == "" {
		err = errors.New("the secret is empty")
	}
	return value, err
}
