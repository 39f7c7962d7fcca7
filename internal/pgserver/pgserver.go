// Package pgserver runs a PostgreSQL server for tests, in a temporary folder and on the loopback address.
package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/trimtab-dev/trimtab/internal/poll"
)

// Password is that of the superuser, who is called postgres.
const Password = "pgserver-password-1"

// Server is a PostgreSQL server.
type Server struct {
	// Port is where it listens, on 127.0.0.1.
	Port int
	t    testing.TB
	bin  string
	dir  string
	as   *syscall.SysProcAttr
	cmd  *exec.Cmd
}

// Start runs a server until the test ends. Without PostgreSQL, the test is skipped, with a sentence that says how to install it.
func Start(t testing.TB) *Server {
	t.Helper()
	bin, err := binaries()
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "pgserver-") //nolint:usetesting // short, and open to the user postgres
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, bin: bin, dir: dir, Port: freePort(t)}
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir) // what is left is in a temporary folder
	})
	if os.Getuid() == 0 {
		s.as = s.asPostgres()
	}
	secret := filepath.Join(dir, "password")
	if err := os.WriteFile(secret, []byte(Password), 0o600); err != nil {
		t.Fatal(err)
	}
	s.own(secret)
	out, err := s.command("initdb", "-D", filepath.Join(dir, "data"), "-U", "postgres", "--pwfile", secret, "-A", "scram-sha-256", "-N", "--locale", "C", "-E", "UTF8").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.Resume()
	return s
}

// binaries returns the folder with PostgreSQL's programs.
func binaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	slices.Sort(found)
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return "", errors.New("there is no PostgreSQL; install it with: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// asPostgres lets processes run as a user other than root, as PostgreSQL requires.
func (s *Server) asPostgres() *syscall.SysProcAttr {
	s.t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		s.t.Skip("PostgreSQL does not run as root, and there is no user postgres; install it with: apt-get install postgresql")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // they are numbers on Linux
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	as := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	s.as = as
	s.own(s.dir)
	return as
}

// own gives a file to the user of the server.
func (s *Server) own(path string) {
	s.t.Helper()
	if s.as == nil {
		return
	}
	if err := os.Chown(path, int(s.as.Credential.Uid), int(s.as.Credential.Gid)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), filepath.Join(s.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = s.as, s.dir
	return cmd
}

// Resume starts the server again.
func (s *Server) Resume() {
	s.t.Helper()
	s.cmd = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+s.dir, "-c", "fsync=off", "-c", "max_connections=50")
	var log bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if !poll.Until(func() bool {
		c, err := s.connect(s.t.Context(), "postgres")
		if err == nil {
			_ = c.Close(s.t.Context()) // it was opened to see whether that works
		}
		return err == nil
	}) {
		s.Stop()
		s.t.Fatalf("PostgreSQL did not start:\n%s", log.String())
	}
}

// Stop stops the server, whoever is connected.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGINT) // a fast shutdown
	_ = s.cmd.Wait()                         // it was told to end
	s.cmd = nil
}

func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=127.0.0.1 port=%d user=postgres password=%s dbname=%s sslmode=disable", s.Port, Password, database))
}

// Connect logs in as the superuser until the test ends.
func (s *Server) Connect(database string) *pgx.Conn {
	s.t.Helper()
	c, err := s.connect(s.t.Context(), database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close(context.WithoutCancel(s.t.Context())) })
	return c
}

// Exec runs statements as the superuser, each on its own.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	c, err := s.connect(s.t.Context(), "postgres")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = c.Close(s.t.Context()) }()
	for _, statement := range statements {
		if _, err := c.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// Value returns the result of a query as text; "-" if there is none.
func (s *Server) Value(query string) string {
	s.t.Helper()
	c, err := s.connect(s.t.Context(), "postgres")
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = c.Close(s.t.Context()) }()
	var value string
	if err := c.QueryRow(s.t.Context(), query).Scan(&value); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			return "-"
		}
		s.t.Fatalf("%s: %v", query, err)
	}
	return strings.TrimSpace(value)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is one
}
