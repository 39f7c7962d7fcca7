package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trace"
)

// passes returns when passes over objects in the operator's namespace began, or ended, by its trace. It watches all namespaces,
// and other tests run beside.
func (o *running) passes(t *testing.T, event string) []time.Time {
	t.Helper()
	var out []time.Time
	for line := range strings.Lines(o.out()) {
		if !strings.HasSuffix(line, "\n") {
			break // the rest is under way
		}
		var r struct {
			Time   time.Time    `json:"time"`
			Object trace.Object `json:"object"`
			Event  string       `json:"event"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if r.Event == event && r.Object.Namespace == o.namespace {
			out = append(out, r.Time)
		}
	}
	return out
}

// TestFailover: a replica that stands by is warm and says so. It works on nothing until the lease is its own, at once if the
// leader hands it over, and after its end if the leader was killed.
func TestFailover(t *testing.T) {
	t.Parallel()
	in := install(t, "failover", nil)
	leader := startOperator(t, in, "--watch-namespaces", in.namespace, "--greeting", "first")
	leader.awaitReady(t)
	const many = 20
	for n := range many {
		testenv.Wait(t, in.client, in.probe(t, fmt.Sprintf("p%d", n)), "the leader to greet", greeted)
	}
	end := filepath.Join(t.TempDir(), "end") // while it does not exist, the follower's passes go on
	allow := func() {
		t.Helper()
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	allow()
	follower := startOperator(t, in, "--watch-namespaces", in.namespace, "--greeting", "second", "--until", end, "--shutdown-timeout", "1m")
	follower.await(t, "/readyz", "ok\nstanding by: another replica holds the lease "+in.namespace+"/failover", http.StatusOK)
	if n := len(follower.passes(t, "start")); n != 0 {
		t.Errorf("a follower began %d passes", n)
	}

	killed := time.Now()
	if err := leader.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-leader.ended
	follower.awaitPass(t)
	first, lease := follower.passes(t, "start")[0], in.lease(t)
	t.Logf("the first pass began %.1f s after the leader was killed, %.3f s after the lease was taken",
		first.Sub(killed).Seconds(), first.Sub(lease.Spec.AcquireTime.Time).Seconds())
	if first.Before(lease.Spec.AcquireTime.Truncate(time.Microsecond)) || *lease.Spec.LeaseTransitions != 1 {
		t.Errorf("the first pass began at %s, and the lease is %+v", first, lease.Spec)
	}
	all := func(note string) {
		t.Helper()
		for n := range many {
			name := fmt.Sprintf("p%d", n)
			testenv.Wait(t, in.client, &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: name}}, "the new leader to greet", func(p *probe.Probe) bool { return p.Status.Note == note+", "+name })
		}
	}
	all("second")

	third := startOperator(t, in, "--watch-namespaces", in.namespace, "--greeting", "third")
	third.await(t, "/readyz", "standing by", http.StatusOK)
	if err := os.Remove(end); err != nil {
		t.Fatal(err)
	}
	began := len(follower.passes(t, "start"))
	in.probe(t, "slow")
	follower.poll(t, "a pass that goes on", func() bool { return len(follower.passes(t, "start")) > began })
	stopped := time.Now()
	follower.terminate(t)
	follower.poll(t, "the operator to stop", func() bool {
		return strings.Contains(follower.log(), "Stopping and waiting for leader election runnables")
	})
	allow()
	follower.stopped(t, 0)
	if log := follower.log(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("an ordinary stop is logged as an error:\n%s", log)
	}
	if holder := in.lease(t).Spec.HolderIdentity; holder != nil && *holder == *lease.Spec.HolderIdentity {
		t.Errorf("the lease is still held by %s, which ended; others wait until it runs out", *holder)
	}
	third.awaitPass(t)
	first = third.passes(t, "start")[0]
	t.Logf("the first pass began %.1f s after the leader was told to stop", first.Sub(stopped).Seconds())
	if last := follower.passes(t, "end"); first.Before(last[len(last)-1]) {
		t.Errorf("two replicas worked at a time: one until %s, the other from %s", last[len(last)-1], first)
	}
	if log := follower.log(); !strings.Contains(log, "took over") {
		t.Errorf("the log does not say that the replica took over:\n%s", log)
	}
	all("third")
	third.stop(t, 0)
}

// TestFormerLeader: a leader that was suspended for longer than its lease lasts ends at once. It writes nothing of the pass
// that it was in, and begins none of those that wait.
func TestFormerLeader(t *testing.T) {
	t.Parallel()
	in := install(t, "formerleader", nil)
	end := filepath.Join(t.TempDir(), "end")
	leader := startOperator(t, in, "--watch-namespaces", in.namespace, "--greeting", "first", "--until", end)
	leader.awaitReady(t)
	const many = 20
	probes := make([]*probe.Probe, many)
	for n := range probes {
		probes[n] = in.probe(t, fmt.Sprintf("p%d", n))
	}
	leader.awaitPass(t)
	follower := startOperator(t, in, "--watch-namespaces", in.namespace, "--greeting", "second")
	follower.await(t, "/readyz", "standing by", http.StatusOK)

	if err := leader.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := len(leader.passes(t, "start"))
	for _, p := range probes {
		testenv.Wait(t, in.client, p, "the follower to greet", func(p *probe.Probe) bool { return p.Status.Note == "second, "+p.Name })
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := leader.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-leader.ended
	if code := leader.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(leader.log(), "has not renewed its lease in time") {
		t.Errorf("the former leader ended with %d; log:\n%s", code, leader.log())
	}
	if n := len(leader.passes(t, "start")) - began; n != 0 {
		t.Errorf("the former leader began %d passes after the lease was another's", n)
	}
	for line := range strings.Lines(leader.out()) {
		if strings.Contains(line, `"event":"write"`) && !strings.Contains(line, `"err"`) {
			t.Errorf("the former leader wrote: %s", line)
		}
	}
	follower.stop(t, 0)
}
