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

// portFile remembers the port in the data folder, so that kubeconfigs handed
// out earlier stay valid.
const portFile = "port"

// listen takes the port before anything else starts: a port that is taken is
// told at once, and nobody can take a free one in between.
func (c *Cluster) listen(ctx context.Context) error {
	port, err := c.port()
	if err != nil {
		return err
	}
	var lc net.ListenConfig
	c.listener, err = lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d of 127.0.0.1 is taken; stop the process that listens there or choose another port", port)
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
		return 0, fmt.Errorf("remembered port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return 0, c.damaged(fmt.Errorf("file %q holds no port number", portFile))
	}
	return port, nil
}

// guardedListener can be closed under an API server that does not know yet that it is to
// stop: one that is stopped while it starts may have begun to serve without having been told,
// and it panics when its listener ends before it does.
type guardedListener struct {
	net.Listener
	abandoned atomic.Bool
}

// abandon frees the port. Whoever still accepts waits until the process ends.
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
