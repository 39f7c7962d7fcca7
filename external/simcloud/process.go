package simcloud

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asCloud makes a test binary a cloud. Its value is the Options as JSON.
const asCloud = "TRIMTAB_SIMCLOUD"

// Main makes the process a cloud if [Start] has started it as one, and then returns true when that has ended:
//
//	func TestMain(m *testing.M) {
//		if simcloud.Main() {
//			return
//		}
//		os.Exit(m.Run())
//	}
func Main() bool {
	value, is := os.LookupEnv(asCloud)
	if !is {
		return false
	}
	var o Options
	err := json.Unmarshal([]byte(value), &o)
	if err == nil {
		err = Serve(context.Background(), o, "127.0.0.1:0", os.Stdout, os.Stdin) //nolint:forbidigo // it is the process
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

// Serve serves a cloud at an address until ctx ends, or alive does if it is not nil. It writes the URL of the cloud as a line
// to out.
func Serve(ctx context.Context, o Options, address string, out io.Writer, alive io.Reader) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: New(o), ReadHeaderTimeout: time.Minute}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return errors.Join(err, listener.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if alive != nil {
		go func() {
			_, _ = io.Copy(io.Discard, alive) // whoever started this process has ended
			cancel()
		}()
	}
	go func() {
		<-ctx.Done()
		_ = server.Close() // what is not served is lost, as with any process that ends
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Process is a cloud in a process of its own.
type Process struct {
	// URL is where it is.
	URL string
	t   testing.TB
}

// Start runs a cloud in a process of its own until the test ends. The test binary is that process: its TestMain must begin with
// [Main].
func Start(t testing.TB, o Options) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self)
	cmd.Env, cmd.Stderr = append(os.Environ(), asCloud+"="+string(data)), os.Stderr
	stdin, err := cmd.StdinPipe() // which ends with this process, however it ends
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // ends it
		_ = cmd.Wait()    // it may have been killed
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(url, "http://") {
		t.Fatalf("the process did not become a cloud: %q, %v; call simcloud.Main first in TestMain", line, err)
	}
	return &Process{URL: url, t: t}
}

// Client returns a client of the cloud, without a login.
func (p *Process) Client() *Client { return &Client{URL: p.URL} }

// Inject is [Cloud.Inject].
func (p *Process) Inject(f Fault) { p.t.Helper(); p.control(http.MethodPost, "faults", f, nil) }

// Heal is [Cloud.Heal].
func (p *Process) Heal() { p.t.Helper(); p.control(http.MethodDelete, "faults", nil, nil) }

// Put is [Cloud.Put].
func (p *Process) Put(i Item) { p.t.Helper(); p.control(http.MethodPost, "items", i, nil) }

// Remove is [Cloud.Remove].
func (p *Process) Remove(id string) {
	p.t.Helper()
	p.control(http.MethodDelete, "items?id="+id, nil, nil)
}

// Items is [Cloud.Items].
func (p *Process) Items() (all map[string]Item) {
	p.t.Helper()
	p.control(http.MethodGet, "items", nil, &all)
	return all
}

// Log is [Cloud.Log].
func (p *Process) Log() (all []Request) {
	p.t.Helper()
	p.control(http.MethodGet, "log", nil, &all)
	return all
}

func (p *Process) control(method, what string, in, out any) {
	p.t.Helper()
	var ignored json.RawMessage
	if out == nil {
		out = &ignored
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), time.Minute)
	defer cancel()
	if _, err := p.Client().call(ctx, method, control+what, "", in, out); err != nil {
		p.t.Fatalf("control the cloud: %v", err)
	}
}
