package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/child"
)

// process is a running operator.
type process struct {
	cmd   *exec.Cmd
	log   *operatorLog
	ended chan struct{}
	err   error // of Wait; valid when ended is closed
}

// start starts an operator in a folder. Its output goes to out.
func start(binary string, args []string, folder string, out io.Writer) (*process, error) {
	log := &operatorLog{out: out}
	cmd := exec.Command(binary, args...) //nolint:noctx // ended by stop
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, log, log
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	if err := child.Start(cmd, p.ended); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() {
		p.err = child.Wait(cmd)
		close(p.ended)
	}()
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// result is how a process has ended, for people.
func (p *process) result() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// Address is where the operator that runs is asked what it does. It follows the operator from process to process. Its zero value
// follows none yet.
type Address struct{ process atomic.Pointer[process] }

// URL returns the debug address of the process that runs; empty if none does, or if it serves none.
func (a *Address) URL() string {
	p := a.process.Load()
	if p == nil || p.hasEnded() {
		return ""
	}
	at := p.log.debugAddress()
	if at == "" || at == "off" {
		return ""
	}
	return "http://" + at
}

// readyWithin is more than an operator needs to fill its caches on a busy machine.
const readyWithin = 2 * time.Minute

// standing is in what a ready operator says that does not lead.
var standing = regexp.MustCompile(`standing by: another replica holds the lease (\S+)`)

// ready waits until the operator says that it is ready, and whether it leads. Then its log is shown. If another one leads, lease is
// what that one holds, as namespace/name.
func (p *process) ready(ctx context.Context) (lease string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	defer p.log.show()
	tick := time.NewTicker(retryEvery / 2)
	defer tick.Stop()
	why := "it has not started its server for health checks"
	for {
		select {
		case <-p.ended:
			p.log.flush()
			return "", fmt.Errorf("the operator ended: %w", p.result())
		case <-ctx.Done():
			p.log.flush()
			return "", fmt.Errorf("the operator is not ready: %s", why)
		case <-tick.C:
		}
		if address := p.log.address(); address != "" {
			ready, said := probe(ctx, address)
			if m := standing.FindStringSubmatch(said); ready && m != nil {
				return m[1], nil
			}
			if ready && !strings.Contains(said, "waiting for the lease") {
				return "", nil
			}
			why = said
		}
	}
}

// probe asks a readiness endpoint.
func probe(ctx context.Context, address string) (ready bool, said string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false, err.Error()
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode == http.StatusOK, strings.TrimSpace(string(body))
}

// stopWithin is more than an operator takes to finish its passes: its own limit is 30 s.
const stopWithin = 40 * time.Second

// stop asks the operator to finish its passes and end, and waits until it has.
func (p *process) stop() error {
	p.log.stopping()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !p.hasEnded() {
		_ = p.cmd.Process.Kill() // where there is no SIGTERM
	}
	late := time.AfterFunc(stopWithin, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	<-p.ended
	return p.err
}

// operatorLog shows the lines that an operator writes. Until it is ready they are kept: an ordinary start is not worth a line,
// and neither is an ordinary end.
type operatorLog struct {
	out io.Writer

	mu     sync.Mutex
	shown  bool
	ending bool
	rest   []byte // of a line that is not complete
	kept   []string
	health string
	debug  string
}

// listening matches each address in the line that the operator writes when it listens.
var listening = regexp.MustCompile(`\b(health|debug)-address=(\S+)`)

var (
	// ordinary matches lines of trimtab's and controller-runtime's loggers that are no warnings.
	ordinary = regexp.MustCompile(`^\S+\s+(INFO|DEBUG)\s`)
	// transitions matches lines about what is shown anyway, as a transition of the object, and about the start of a leader.
	transitions = regexp.MustCompile(` from=\S+ to=\S+ |  Starting (Controller|workers|EventSource)\b`)
	// repeated matches what a line says about its object, apart from its name, and about the code that logs.
	repeated = regexp.MustCompile(` (object\.\w+|resource\.\w+|reconcileID|logger|controllerGroup|controllerKind|namespace)=\S*`)
)

// mostKept is how many lines of a start are kept.
const mostKept = 100

func (l *operatorLog) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return len(text), nil
		}
		l.rest = rest
		l.add(string(line))
	}
}

func (l *operatorLog) add(line string) {
	for _, found := range listening.FindAllStringSubmatch(line, -1) {
		if into := map[string]*string{"health": &l.health, "debug": &l.debug}[found[1]]; *into == "" {
			*into = found[2]
		}
	}
	if l.shown {
		if !ordinary.MatchString(line) || !l.ending && !transitions.MatchString(line) {
			fmt.Fprintf(l.out, "      | %s\n", repeated.ReplaceAllString(line, ""))
		}
		return
	}
	if l.kept = append(l.kept, line); len(l.kept) > mostKept {
		l.kept = l.kept[1:]
	}
}

func (l *operatorLog) address() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

func (l *operatorLog) debugAddress() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.debug
}

// show shows what is written from now on.
func (l *operatorLog) show() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown, l.kept = true, nil
}

// stopping shows only warnings and errors from now on.
func (l *operatorLog) stopping() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ending = true
}

// flush shows what has been kept.
func (l *operatorLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.kept {
		fmt.Fprintf(l.out, "      | %s\n", line)
	}
	l.kept = nil
}
