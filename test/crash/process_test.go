package crash

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trimtab-dev/trimtab/trace"
)

// operatorPackage is the operator as its users run it.
const operatorPackage = "github.com/trimtab-dev/trimtab/samples/nats/cmd/nats-operator"

// build compiles the operator once for all tests.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "trimtab-crash-")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "nats-operator")
	out, err := exec.Command("go", "build", "-o", binary, operatorPackage).CombinedOutput() //nolint:noctx // bounded by the test's own deadline
	if err != nil {
		return string(out), err
	}
	return binary, nil
})

// process keeps one operator running: whenever it dies it is started again.
type process struct {
	t    *testing.T
	args []string
	// trace is the file that each life of the operator adds its events to.
	trace string

	mu     sync.Mutex
	cmd    *exec.Cmd
	log    *bytes.Buffer
	starts int
	ended  chan struct{} // closed when the one running is dead
	stop   bool
	done   chan struct{}
}

func startOperator(t *testing.T, args []string) *process {
	t.Helper()
	p := &process{t: t, args: args, trace: filepath.Join(t.TempDir(), "trace"), log: &bytes.Buffer{}, done: make(chan struct{})}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	go p.keep()
	t.Cleanup(p.shutdown)
	return p
}

func (p *process) start() error {
	binary, err := build()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.CommandContext(context.WithoutCancel(p.t.Context()), binary, append(p.args, "--trace", p.trace)...)
	p.cmd.Stderr = &lockedWriter{mu: &p.mu, to: p.log}
	p.ended = make(chan struct{})
	p.starts++
	return p.cmd.Start()
}

// keep starts the operator again until shutdown.
func (p *process) keep() {
	defer close(p.done)
	for {
		p.mu.Lock()
		cmd, ended := p.cmd, p.ended
		p.mu.Unlock()
		_ = cmd.Wait()
		close(ended)
		p.mu.Lock()
		stop := p.stop
		p.mu.Unlock()
		if stop {
			return
		}
		if err := p.start(); err != nil {
			p.t.Errorf("start the operator again: %v", err)
			return
		}
	}
}

// kill sends SIGKILL and returns when the process is dead.
func (p *process) kill() {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	_ = cmd.Process.Kill()
	<-ended
}

// running tells whether the operator is alive at the moment.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) shutdown() {
	p.mu.Lock()
	p.stop = true
	p.mu.Unlock()
	p.kill()
	<-p.done
	if p.t.Failed() {
		p.t.Logf("the operator's log, %d starts:\n%s\nits passes:\n%s", p.starts, p.log, p.passes())
	}
}

// passes is what all lives of the operator did, for people.
func (p *process) passes() string {
	f, err := os.Open(p.trace)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	var records []trace.Record
	for r, err := range trace.Decode(f) {
		if err != nil {
			return err.Error()
		}
		records = append(records, r)
	}
	return trace.Transcript(records)
}

// lockedWriter lets the log be read while the process writes it.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// kubeconfig writes the file that leads the operator to url, where nothing asks who it is.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["proxy"] = &clientcmdapi.Cluster{Server: url}
	c.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy", Namespace: "default"}
	c.CurrentContext = "proxy"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}
