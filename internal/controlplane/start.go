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

// Options say how a control plane runs. The zero value is right for tests: free ports and
// a temporary folder.
type Options struct {
	// Binary is the devcluster binary. Empty means the one that [Binary] finds or builds.
	Binary string
	// Progress is told how a build goes. Nil tells nobody.
	Progress Progress

	// Data is the folder that holds the cluster's state and survives it. Empty means a
	// temporary one.
	Data string
	// Port is where the API server listens on 127.0.0.1. Zero means the one that Data
	// remembers, or a free one.
	Port int
	// Kubeconfig is the file that the admin's kubeconfig is written to. Empty means a
	// file in the data folder.
	Kubeconfig string
	// AuditLog is the file that receives an audit event per request. Empty means none.
	AuditLog string
	// Log is the file that receives the components' logs. Empty means devcluster.log in
	// the data folder.
	Log string
	// Nodes is how many simulated nodes there are. Zero means 1; less than zero means none.
	Nodes int

	// Detach lets the control plane outlive this process and the context. Its complaints
	// then go to the file named here. Empty means that it ends with both.
	Detach string
	// Hold is a file that the control plane keeps open, with any lock on it, as long as
	// it lives. Nil means none.
	Hold *os.File
}

// readyWithin is generous: on two busy cores a start takes ten seconds.
const readyWithin = 2 * time.Minute

// stopWithin is how long a process may take to end in order before it is killed.
const stopWithin = 20 * time.Second

var errNotReady = errors.New("it was not ready within " + readyWithin.String())

// Cluster is a running control plane.
type Cluster struct {
	// URL is the API server's address.
	URL string `json:"url"`
	// Kubeconfig is the path of the admin's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Version is the version of Kubernetes, for example "v1.37.1".
	Version string `json:"version"`
	// PID is the process.
	PID int `json:"pid"`
	// Seconds is how long the start took.
	Seconds float64 `json:"seconds"`
	// Data is the folder with the cluster's state.
	Data string `json:"data"`
	// Config is the admin's client configuration, without client-side rate limits: the
	// server is ours alone.
	Config *rest.Config `json:"-"`

	run    *run
	unbind func() bool // stops following the context of Start
}

// Start runs a control plane and answers when it is ready. Unless detached it ends, and
// its temporary data goes, when ctx ends, with Stop, when nothing refers to the Cluster any
// more, or when this process dies.
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

// Stop ends the control plane and waits until it is gone. Safe to repeat.
func (c *Cluster) Stop() error {
	c.unbind()
	return c.run.stop()
}

// Wait returns when the control plane has ended: nil if it was asked to, by whomever, and
// otherwise what it complained about last.
func (c *Cluster) Wait() error { return c.run.wait() }

// run is a process that has been started. It has no goroutine of its own, so that tests
// that look for leaked ones find none.
type run struct {
	cmd       *exec.Cmd
	stdin     io.Closer // nil if detached
	stderr    *os.File
	leftover  string // the name of stderr where it could not be removed at once
	temporary string // a data folder that is not to survive
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

// launch starts the process and answers its standard output.
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
	// How the process ends is up to run.end, which asks before it kills.
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

// complaints opens the file for the process's standard error: one without a name, unless
// there has to be one. A pipe would need somebody to read it for ever.
func complaints(path string) (f *os.File, leftover string, err error) {
	if path != "" {
		f, err = os.Create(path)
	} else {
		f, err = os.CreateTemp("", "trimtab-devcluster-*.log")
	}
	if err != nil && path == "" {
		return nil, "", fmt.Errorf("keep what the control plane complains about: %w; set TMPDIR to a folder that can be written", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("keep what the control plane complains about: %w", err)
	}
	if path == "" && os.Remove(f.Name()) != nil {
		leftover = f.Name() // not every system removes files that are open
	}
	return f, leftover, nil
}

// ready waits for the line that the process prints when it is ready.
func (r *run) ready(ctx context.Context, stdout *os.File) (*Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, errNotReady)
	defer cancel()
	// The read ends with the process, so ending the process is how it is given up.
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

// strangeError is what comes of a binary that is something else.
type strangeError struct{ path, did string }

func (e *strangeError) Error() string {
	return fmt.Sprintf("start the control plane: %q %s; is it a devcluster of this version?", e.path, e.did)
}

// namedBy says where the path of the binary came from, if not from here.
func (o Options) namedBy() string {
	if path := os.Getenv(EnvBinary); path == "" || path != o.Binary {
		return ""
	}
	return "; " + EnvBinary + " names it"
}

// early words the end of a process that never became ready.
func (r *run) early() error {
	if err := r.wait(); err != nil {
		return err
	}
	return &strangeError{path: r.cmd.Path, did: "ended before it was ready, without a word"}
}

// await waits for the end of the process and words a bad one.
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

// complaintsRead is how much of the end of the standard error is looked at.
const complaintsRead = 64 << 10

// lastComplaint is the sentence that devcluster gives as the reason of its end, or else
// the last line that any part of it printed.
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

// end asks the process to go, then makes it, and removes what a killed one left.
func (r *run) end() error {
	if r.stdin != nil {
		_ = r.stdin.Close() // the child takes this as the end of its parent
	} else {
		_ = terminateGroup(r.cmd)
	}
	insist := time.AfterFunc(stopWithin, func() { _ = killGroup(r.cmd) })
	defer insist.Stop()
	_ = r.wait() // how it ended is of no interest any more
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
