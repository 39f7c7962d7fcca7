package devcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// portFile stores the port in the data folder, so that existing kubeconfigs stay
// valid.
const portFile = "port"

// listen opens the port before anything else starts, so that a port in use is
// reported at once, and a free one cannot be taken by another process meanwhile.
func (c *Cluster) listen(ctx context.Context) error {
	port, err := c.port()
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	c.listener, err = lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d of 127.0.0.1 is taken; stop the process that uses it, or choose another port", port)
	}
	if errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("port %d of 127.0.0.1 is reserved for root; choose one above 1023", port)
	}
	if err != nil {
		return fmt.Errorf("listen on port %d of 127.0.0.1: %w", port, err)
	}
	guarded := &guardedListener{Listener: c.listener}
	c.listener = guarded
	c.onStop(guarded.abandon)
	_, got, err := net.SplitHostPort(c.listener.Addr().String())
	if err != nil {
		return err
	}
	return c.folder.Write(portFile, []byte(got+"\n"))
}

func (c *Cluster) port() (int, error) {
	if c.options.Port != 0 {
		return c.options.Port, nil
	}
	content, err := os.ReadFile(c.folder.Join(portFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("stored port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, c.damaged(fmt.Errorf("file %q does not contain a port number", portFile))
	}
	return port, nil
}

// guardedListener is a listener that can be abandoned while the API server still
// uses it. An API server that is stopped while it starts may already be serving,
// and it panics if its listener is closed before it stops.
type guardedListener struct {
	net.Listener
	abandoned atomic.Bool
}

// abandon frees the port. Calls of Accept then block until the process ends.
func (l *guardedListener) abandon() error {
	l.abandoned.Store(true)
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Accept waits for a connection.
func (l *guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && l.abandoned.Load() {
		select {}
	}
	return conn, err
}
