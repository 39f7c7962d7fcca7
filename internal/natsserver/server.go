// Package natsserver runs a NATS server with JetStream in this process, on loopback and with its own
// data folder. It records every JetStream API request that the server receives, from any client.
//
// It is for tests and the demo, not for production.
package natsserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Options configure a server. The zero value is valid.
type Options struct {
	// Dir is the folder for the server's data. Stop keeps it. Empty means a temporary folder,
	// which Stop removes.
	Dir string
	// Port is the port on 127.0.0.1. Zero means a free one.
	Port int
	// MaxStore is the maximum size of streams on disk, in bytes. Zero means 10 GiB.
	MaxStore int64
	// MaxMemory is the maximum size of streams in memory, in bytes. Zero means 256 MiB.
	MaxMemory int64
	// Users may connect. Nil means that anybody may.
	Users []User
	// Received is called with each request before it is passed to the server. If it returns
	// false, the request is dropped. Nil means that all requests are passed on.
	Received func(Call) bool
	// Answered is called with each request after the server has answered it and before the
	// answer is passed to the client. It may be nil.
	Answered func(Call)
}

// User is a user who may connect, with a password or with the public part of an NKey.
type User struct{ Name, Password, NKey string }

// Server is a running NATS server.
type Server struct {
	nats    *server.Server
	own     User           // used by Connect
	options server.Options // without users
	proxy   *proxy
	log     *callLog
	remove  string // temporary folder, or empty
}

// startTimeout is how long a start that fails takes: one that succeeds is complete when server.Start returns, however slow the machine is.
const startTimeout = 20 * time.Second

// Start starts a server and waits until it accepts connections and JetStream is ready.
func Start(o Options) (*Server, error) {
	dir, remove, err := o.dir()
	if err != nil {
		return nil, err
	}
	s := &Server{remove: remove, own: User{Name: "natsserver", Password: rand.Text()}}
	if err := s.start(o, dir); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start a NATS server in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) start(o Options, dir string) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		return fmt.Errorf("port %d is in use; choose another, or 0 for a free one: %w", o.Port, err)
	}
	s.options = server.Options{
		ServerName:         "natsserver",
		DontListen:         true, // the proxy does
		NoLog:              true,
		NoSigs:             true, // signals are up to the process
		JetStream:          true,
		StoreDir:           dir,
		JetStreamMaxStore:  orDefault(o.MaxStore, 10<<30),
		JetStreamMaxMemory: orDefault(o.MaxMemory, 256<<20),
	}
	s.nats, err = server.NewServer(s.admitting(o.Users))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.nats.Start()
	if !s.nats.ReadyForConnections(startTimeout) || !s.nats.JetStreamEnabled() {
		return errors.Join(fmt.Errorf("not ready after %s; is the folder writable?", startTimeout), listener.Close())
	}
	s.log = &callLog{received: o.Received, answered: o.Answered}
	s.proxy = openProxy(listener, s.nats.InProcessConn, s.log)
	return nil
}

func (o Options) dir() (dir, remove string, err error) {
	if o.Dir != "" {
		dir, err = filepath.Abs(o.Dir)
		return dir, "", err
	}
	dir, err = os.MkdirTemp("", "natsserver-")
	return dir, dir, err
}

// URL returns the address for clients.
func (s *Server) URL() string { return "nats://" + s.proxy.listener.Addr().String() }

// Port returns the port that the server listens on.
func (s *Server) Port() int {
	if a, ok := s.proxy.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// Connect opens a connection with a name, which [Call.Client] reports. It is accepted whatever
// Options.Users says.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	return nats.Connect(s.URL(), nats.Name(name), nats.UserInfo(s.own.Name, s.own.Password))
}

// SetUsers changes who may connect while the server is running. Nil means that anybody may. As when
// NATS reloads its configuration, connections of users who are no longer allowed are closed.
func (s *Server) SetUsers(users []User) error {
	if err := s.nats.ReloadOptions(s.admitting(users)); err != nil {
		return fmt.Errorf("change the users: %w", err)
	}
	return nil
}

// Refused returns how many connections were refused because of wrong credentials, or closed because
// their user is no longer allowed.
func (s *Server) Refused() int { return int(s.proxy.refused.Load()) }

// admitting returns the options of a server that accepts users.
func (s *Server) admitting(users []User) *server.Options {
	o := s.options.Clone()
	if users == nil {
		return o
	}
	o.Users = []*server.User{{Username: s.own.Name, Password: s.own.Password}}
	for _, u := range users {
		if u.NKey != "" {
			o.Nkeys = append(o.Nkeys, &server.NkeyUser{Nkey: u.NKey})
			continue
		}
		o.Users = append(o.Users, &server.User{Username: u.Name, Password: u.Password})
	}
	return o
}

// Stop stops the server and waits until it has stopped. It may be called twice. The recorded calls can
// still be read.
func (s *Server) Stop() {
	if s.proxy != nil {
		s.proxy.close()
	}
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	if s.remove != "" {
		// What cannot be removed is in the system's temporary folder.
		_ = os.RemoveAll(s.remove)
	}
}

func orDefault(v, d int64) int64 {
	if v == 0 {
		return d
	}
	return v
}
