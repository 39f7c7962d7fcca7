package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/child"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/trace"
)

// operator is the process of the operator. The demo kills and restarts it.
type operator struct {
	binary string
	args   []string
	print  *steps.Printer

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{}
	health string
	log    tail
	// since is when each object last left a resting state; drifts are the differences that
	// the operator reported.
	since  map[string]time.Time
	drifts []string
}

func newOperator(binary string, args []string, printer *steps.Printer) *operator {
	return &operator{binary: binary, args: args, print: printer, since: map[string]time.Time{}}
}

// start starts the operator. It ends with this process, however this process ends.
func (o *operator) start() error {
	cmd := exec.Command(o.binary, o.args...) //nolint:noctx // ended by stop and kill
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	logs, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	if err := child.Start(cmd, ended); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	o.mu.Lock()
	o.cmd, o.ended, o.health = cmd, ended, ""
	o.mu.Unlock()
	go func() {
		defer close(ended)
		var readers sync.WaitGroup
		readers.Go(func() { o.readTrace(out) })
		readers.Go(func() { o.readLog(logs) })
		readers.Wait()
		_ = child.Wait(cmd)
	}()
	return nil
}

func (o *operator) pid() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cmd.Process.Pid
}

// readTrace prints the transitions of objects from the operator's trace.
func (o *operator) readTrace(r io.Reader) {
	for record, err := range trace.Decode(r) {
		if err != nil {
			continue // a killed process leaves an incomplete last line
		}
		o.show(record)
	}
}

func (o *operator) show(r trace.Record) {
	name := r.Object.String()
	if r.Object.Namespace == namespace {
		name = r.Object.Kind + "/" + r.Object.Name
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := r.Event.(type) {
	case trace.Transition:
		o.print.Line("      %-20s %s → %s   %s%s", name, or(e.From, "(new)"), e.To, steps.Seconds(o.lasted(name, e.From, r.Time)), because(e))
	case trace.Drift:
		o.drifts = append(o.drifts, fmt.Sprintf("%s %s: want %s, have %s", name, e.Path, e.Want, e.Have))
		o.print.Line("      %-20s differs: %s is %s, want %s", name, e.Path, e.Have, e.Want)
	case trace.Decision:
		if e.Rule == waits && o.since[name+waits].IsZero() {
			o.since[name+waits] = r.Time
			o.print.Line("      %-20s waits for its stream", name)
		}
	case trace.Start, trace.Call, trace.Write, trace.End:
	}
}

// waits is the rule that applies to an object whose dependency is missing.
const waits = "D-04"

// lasted returns the time since the object last left a resting state.
func (o *operator) lasted(name, from string, now time.Time) time.Duration {
	switch from {
	case "", "Succeeded", "Failed":
		o.since[name] = now
	}
	return now.Sub(o.since[name])
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// because returns the message of a transition that needs an explanation: a failure.
func because(e trace.Transition) string {
	if e.To != "Failed" || e.Message == "" {
		return ""
	}
	return "   " + e.Message
}

// readLog keeps the last lines of the log and finds the health address in it.
func (o *operator) readLog(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line map[string]any
		o.mu.Lock()
		o.log.add(lines.Text())
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			if address, ok := line["health-address"].(string); ok {
				o.health = address
			}
		}
		o.mu.Unlock()
	}
}

// isReady reports whether the operator's readiness endpoint says so.
func (o *operator) isReady(ctx context.Context) (bool, error) {
	o.mu.Lock()
	address, ended := o.health, o.ended
	o.mu.Unlock()
	select {
	case <-ended:
		return false, fmt.Errorf("the operator ended: %s", o.lastWords())
	default:
	}
	if address == "" {
		return false, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, nil
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK, nil
}

func (o *operator) lastWords() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.log.String())
}

// kill sends SIGKILL and returns when the process has ended.
func (o *operator) kill() {
	o.mu.Lock()
	cmd, ended := o.cmd, o.ended
	o.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-ended
}

// stop ends the operator.
func (o *operator) stop() { o.kill() }

// differences returns the differences that the operator has reported so far.
func (o *operator) differences() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.drifts...)
}

// tail keeps the last lines of a log.
type tail struct{ lines []string }

func (t *tail) add(line string) {
	const most = 5
	t.lines = append(t.lines, line)
	if len(t.lines) > most {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string { return strings.Join(t.lines, "\n") }
