// Package natsserver runs a NATS server with JetStream inside this process, on loopback
// with a data folder of its own, and keeps a log of every JetStream API request that the
// server received: what NATS really got, whoever sent it.
//
// It serves tests and the demo; it is no way to run NATS for anything that matters.
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

// Options say how a server runs. The zero value is right for most.
type Options struct {
	// Dir holds the server's data and is kept by Stop. Empty means a temporary folder
	// that Stop removes.
	Dir string
	// Port is the port on 127.0.0.1. Zero means any free one.
	Port int
	// MaxStore limits what streams on disk may take, in bytes. Zero means 10 GiB.
	MaxStore int64
	// MaxMemory limits what streams in memory may take, in bytes. Zero means 256 MiB.
	MaxMemory int64
	// Users are those who may connect. Nil means anybody.
	Users []User
	// Received is called with each request before the server gets it, which waits until
	// Received returns; false keeps it from the server for good. Nil means true.
	Received func(Call) bool
	// Answered is called with each request once the server has answered it and before the
	// caller learns of the answer, which waits until Answered returns. Nil means nothing.
	Answered func(Call)
}

// User is somebody who may connect: by password, or by the public part of an NKey.
type User struct{ Name, Password, NKey string }

// Server is a running NATS server.
type Server struct {
	nats    *server.Server
	own     User           // by which Connect connects
	options server.Options // without users
	proxy   *proxy
	log     *callLog
	remove  string // temporary folder, or empty
}

// startTimeout is how long a server that works never takes.
const startTimeout = 20 * time.Second

// Start starts a server and waits until it takes connections and JetStream is up.
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
		return fmt.Errorf("port %d is not free; choose another, or 0 for any free one: %w", o.Port, err)
	}
	s.options = server.Options{
		ServerName:         "natsserver",
		DontListen:         true, // the proxy does
		NoLog:              true,
		NoSigs:             true, // signals belong to the process around it
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

// URL is the address for clients.
func (s *Server) URL() string { return "nats://" + s.proxy.listener.Addr().String() }

// Port is the port that the server listens on.
func (s *Server) Port() int {
	if a, ok := s.proxy.listener.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// Connect opens a connection under a name, by which [Call.Client] tells callers apart. It is
// let in whoever else may connect.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	return nats.Connect(s.URL(), nats.Name(name), nats.UserInfo(s.own.Name, s.own.Password))
}

// SetUsers changes who may connect while the server runs. Nil means anybody. Connections of
// those who no longer may are ended, as NATS does when its configuration is read again.
func (s *Server) SetUsers(users []User) error {
	if err := s.nats.ReloadOptions(s.admitting(users)); err != nil {
		return fmt.Errorf("change the users: %w", err)
	}
	return nil
}

// Refused is how many connections were turned away for wrong credentials, or ended because
// their user may no longer connect.
func (s *Server) Refused() int { return int(s.proxy.refused.Load()) }

// admitting are the options of a server that lets users in.
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

// Stop stops the server and waits until it is down. It may be called twice. The log of
// calls stays readable.
func (s *Server) Stop() {
	if s.proxy != nil {
		s.proxy.close()
	}
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	if s.remove != "" {
		// What cannot be removed lies in the system's temporary folder, which is cleaned.
		_ = os.RemoveAll(s.remove)
	}
}

func orDefault(v, d int64) int64 {
	if v == 0 {
		return d
	}
	return v
}
