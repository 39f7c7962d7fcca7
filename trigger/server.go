package trigger

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	room     room
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

// handle serves what is posted to a path, as long as mgr runs. largest is the largest body in bytes.
func (s *Server) handle(mgr manager.Manager, path string, largest int64, h http.Handler) error {
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
	s.room.fit(largest)
	_, err := guard.Call("trigger", "Handle", func() (struct{}, error) {
		s.mux.Handle("POST "+path, h)
		return struct{}{}, nil
	})
	if p, is := errors.AsType[*guard.PanicError](err); is {
		return fmt.Errorf("path %s of the trigger.Server at %s is not one of http.ServeMux: %v", path, s.Address, p.Value)
	}
	return nil
}

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
			Handler: s.room.bound(s.mux), MaxHeaderBytes: 1 << 16,
			ReadTimeout: requestTimeout, IdleTimeout: 2 * time.Minute,
		},
	})
}
