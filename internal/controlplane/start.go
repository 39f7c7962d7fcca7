package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options configure a control plane. The zero value is right for tests: it uses free ports and a
// temporary folder.
type Options struct {
	// Binary is the path of the devcluster binary. Empty means the one that [Binary] returns.
	Binary string
	// Progress is called during a build. Nil means that progress is not reported.
	Progress Progress

	// Data is the folder for the cluster's state. It is kept when the cluster ends. Empty means
	// a temporary folder.
	Data string
	// Port is the port of the API server on 127.0.0.1. Zero means the port stored in Data, or a
	// free one.
	Port int
	// Kubeconfig is the path to which the administrator's kubeconfig is written. Empty means a
	// file in the data folder.
	Kubeconfig string
	// AuditLog is the file to which an audit event is written for each request. Empty means
	// none.
	AuditLog string
	// Log is the file for the components' logs. Empty means devcluster.log in the data folder.
	Log string
	// Nodes is the number of simulated nodes. Zero means one. -1 means none, and nothing is simulated.
	Nodes int

	// Detach names a file for error messages and lets the control plane outlive this process and
	// the context. Empty means that the control plane ends with them.
	Detach string
	// Hold is a file that the control plane keeps open while it runs, with any lock on it. Nil
	// means none.
	Hold *os.File
}

// readyWithin is more than the process itself waits for etcd, for the API server, and for its objects. It says which is not ready.
const readyWithin = 20 * time.Minute

// stopWithin is how long a process may take to stop before it is killed.
const stopWithin = time.Minute

var errNotReady = errors.New("it was not ready within " + readyWithin.String())

// Cluster is a running control plane.
type Cluster struct {
	// URL is the address of the API server.
	URL string `json:"url"`
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Version is the version of Kubernetes, for example "v1.37.1".
	Version string `json:"version"`
	// PID is the id of the process.
	PID int `json:"pid"`
	// Seconds is how long the start took.
	Seconds float64 `json:"seconds"`
	// Data is the folder with the cluster's state.
	Data string `json:"data"`
	// Config is the administrator's client configuration. It has no client-side rate limits,
	// because nobody else uses the server.
	Config *rest.Config `json:"-"`

	run    *run
	unbind func() bool // detaches the cluster from the context of Start
}

// Start starts a control plane and returns when it is ready. Unless it is detached, it ends, and its
// temporary data is removed, when ctx ends, Stop is called, the Cluster is no longer reachable, or this
// process dies.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Binary == "" {
		var err error
		if o.Binary, err = Binary(ctx, o.Progress); err != nil {
			return nil, err
		}
	}
	r, stdout, err := launch(ctx, o)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	c, err := r.ready(ctx, stdout)
	if _, strange := errors.AsType[*strangeError](err); strange {
		err = fmt.Errorf("%w%s", err, o.namedBy())
	}
	if err == nil {
		c.Config, err = adminConfig(c.Kubeconfig)
	}
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	if o.Data == "" {
		r.temporary = c.Data
	}
	c.run = r
	c.unbind = func() bool { return true }
	if o.Detach == "" {
		c.unbind = context.AfterFunc(ctx, func() { _ = r.stop() })
	}
	return c, nil
}

func adminConfig(kubeconfig string) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the control plane's kubeconfig: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// Stop stops the control plane and waits until it has ended. It may be called more than once.
func (c *Cluster) Stop() error {
	c.unbind()
	return c.run.stop()
}

// Wait waits until the control plane has ended. It returns nil if the control plane was asked to stop,
// and otherwise an error with its last error message.
func (c *Cluster) Wait() error { return c.run.wait() }

// run is a started process. It has no goroutine of its own, so that tests that check for leaked
// goroutines find none.
type run struct {
	cmd       *exec.Cmd
	stdin     io.Closer // nil if detached
	stderr    *os.File
	leftover  string // the name of stderr if it could not be removed at once
	temporary string // a temporary data folder
	wait      func() error
	stop      func() error
}

func (o Options) args() []string {
	var args []string
	text := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	number := func(flag string, value int) {
		if value != 0 {
			args = append(args, flag, strconv.Itoa(value))
		}
	}
	text("--data", o.Data)
	number("--port", o.Port)
	text("--kubeconfig", o.Kubeconfig)
	text("--audit-log", o.AuditLog)
	text("--log", o.Log)
	number("--nodes", o.Nodes)
	if o.Detach == "" {
		args = append(args, "--with-parent")
	}
	return args
}

// launch starts the process and returns its standard output.
func launch(ctx context.Context, o Options) (*run, *os.File, error) {
	stderr, leftover, err := complaints(o.Detach)
	if err != nil {
		return nil, nil, err
	}
	stdout, w, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, stderr.Close())
	}
	defer w.Close()
	// run.end ends the process: it asks first and kills later.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.Binary, o.args()...)
	cmd.Stdout, cmd.Stderr = w, stderr
	if o.Hold != nil {
		cmd.ExtraFiles = []*os.File{o.Hold}
	}
	r := &run{cmd: cmd, stderr: stderr, leftover: leftover}
	r.wait = sync.OnceValue(r.await)
	r.stop = sync.OnceValue(r.end)
	if o.Detach != "" {
		ownSession(cmd)
	} else {
		OwnGroup(cmd)
		if r.stdin, err = cmd.StdinPipe(); err != nil {
			return nil, nil, errors.Join(err, stderr.Close(), stdout.Close())
		}
	}
	if err := cmd.Start(); err != nil {
		err = fmt.Errorf("start the control plane: %w%s", err, o.namedBy())
		return nil, nil, errors.Join(err, stderr.Close(), stdout.Close())
	}
	return r, stdout, nil
}

// complaints opens a file for the process's standard error. The file has no name unless it needs one.
// A pipe would have to be read all the time.
func complaints(path string) (f *os.File, leftover string, err error) {
	if path != "" {
		f, err = os.Create(path)
	} else {
		f, err = os.CreateTemp("", "trimtab-devcluster-*.log")
	}
	if err != nil && path == "" {
		return nil, "", fmt.Errorf("open a file for the control plane's errors: %w; set TMPDIR to a writable folder", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open a file for the control plane's errors: %w", err)
	}
	if path == "" && os.Remove(f.Name()) != nil {
		leftover = f.Name() // some systems cannot remove open files
	}
	return f, leftover, nil
}

// ready waits for the line that the process prints when it is ready.
func (r *run) ready(ctx context.Context, stdout *os.File) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	// The read ends with the process, so it is cancelled by ending the process.
	giveUp := context.AfterFunc(ctx, func() { _ = r.stop() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if !giveUp() {
		return nil, fmt.Errorf("start the control plane: %w", context.Cause(ctx))
	}
	if errors.Is(err, io.EOF) {
		return nil, r.early()
	}
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	var got struct {
		Ready bool `json:"ready"`
		Cluster
	}
	if err := json.Unmarshal(line, &got); err != nil || !got.Ready {
		return nil, &strangeError{path: r.cmd.Path, did: fmt.Sprintf("answered %q", bytes.TrimSpace(line))}
	}
	return &got.Cluster, nil
}

// strangeError is the error if the binary is not a devcluster.
type strangeError struct{ path, did string }

func (e *strangeError) Error() string {
	return fmt.Sprintf("start the control plane: %q %s; is it a devcluster of this version?", e.path, e.did)
}

// namedBy says where the path of the binary came from, unless this package chose it.
func (o Options) namedBy() string {
	if path := os.Getenv(EnvBinary); path == "" || path != o.Binary {
		return ""
	}
	return "; " + EnvBinary + " names it"
}

// early returns the error for a process that ended before it was ready.
func (r *run) early() error {
	if err := r.wait(); err != nil {
		return err
	}
	return &strangeError{path: r.cmd.Path, did: "ended before it was ready, without a word"}
}

// await waits until the process has ended and returns an error if it failed.
func (r *run) await() error {
	err := r.cmd.Wait()
	said := r.lastComplaint()
	_ = r.stderr.Close()
	if err == nil {
		return nil
	}
	if said != "" {
		return fmt.Errorf("the control plane ended: %s", said)
	}
	return fmt.Errorf("the control plane ended: %w", err)
}

// complaintsRead is how many bytes at the end of standard error are examined.
const complaintsRead = 64 << 10

// lastComplaint returns the reason that devcluster gave for its end, or else the last line that any
// of its components printed.
func (r *run) lastComplaint() string {
	info, err := r.stderr.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-complaintsRead)
	text, err := io.ReadAll(io.NewSectionReader(r.stderr, from, complaintsRead))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range slices.Backward(lines) {
		if said, ok := strings.CutPrefix(line, "devcluster: "); ok {
			return said
		}
	}
	return lines[len(lines)-1]
}

// end asks the process to stop, kills it if necessary, and removes what a killed process left.
func (r *run) end() error {
	if r.stdin != nil {
		_ = r.stdin.Close() // for the child, this is the end of its parent
	} else {
		_ = terminateGroup(r.cmd)
	}
	insist := time.AfterFunc(stopWithin, func() { _ = KillGroup(r.cmd) })
	defer insist.Stop()
	_ = r.wait() // how it ended does not matter any more
	for _, path := range []string{r.leftover, r.temporary} {
		if path == "" {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the control plane's data: %w", err)
		}
	}
	return nil
}
