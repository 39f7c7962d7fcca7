package crash

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/internal/opertest"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestSweep kills the operator before and after each write of a life of a Stream and of a
// Consumer that needs it: create, update, drift, delete. Each run must end as the
// undisturbed one did, with the same requests accepted by NATS, and in silence.
func TestSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, nats.CRDs)
	binary := opertest.Build(t, operatorPackage)
	quiet := live(t, cfg, binary, point{})
	t.Logf("undisturbed: %d writes\n  %s", len(quiet.writes), strings.Join(quiet.writes, "\n  "))
	for write := 1; write <= len(quiet.writes); write++ {
		for _, after := range []bool{false, true} {
			at := point{write: write, after: after}
			t.Run(fmt.Sprintf("killed %s %s", at, quiet.writes[write-1]), func(t *testing.T) {
				t.Parallel()
				got := live(t, cfg, binary, at)
				if !got.killed {
					t.Fatalf("the operator never came to write %d; it made %d", write, len(got.writes))
				}
				if diff := cmp.Diff(quiet.accepted, got.accepted); diff != "" {
					t.Errorf("requests that NATS accepted (-undisturbed +killed):\n%s", diff)
				}
				if diff := cmp.Diff(quiet.middle, got.middle); diff != "" {
					t.Errorf("streams, consumers and objects before deletion (-undisturbed +killed):\n%s", diff)
				}
			})
		}
	}
}

// outcome is what one run of the scenario left to compare.
type outcome struct {
	writes   []string // of the operator, to both sides, in order
	killed   bool
	accepted []string // mutating requests that NATS accepted, sorted
	middle   state    // before deletion
}

// live plays the scenario with the operator killed at one point.
func live(t *testing.T, cfg *rest.Config, binary opertest.Binary, at point) outcome {
	t.Helper()
	w := newWorld(t, cfg, binary, at)
	// One thing at a time, so that the undisturbed run always writes the same.
	w.create(w.consumer)
	w.waiting()
	w.create(w.stream)
	w.ready(1, 1)
	w.merge(w.consumer, `{"spec":{"maxDeliver":7}}`)
	w.ready(1, 2)
	w.merge(w.stream, `{"spec":{"maxMsgs":1000}}`)
	w.ready(2, 2)
	w.limitStream(5)
	w.until("the stream's limit to be repaired", func() bool { return w.state().MaxMsgs == 1000 })
	w.silence()
	w.deleteConsumer()
	w.until("the consumer to be made again", func() bool { return w.state().MaxDeliver == 7 })
	w.silence()
	w.ready(2, 2)
	middle := w.state()
	w.delete(w.consumer)
	w.delete(w.stream)
	w.empty()
	w.silence()
	writes, killed := w.gate.seen()
	return outcome{writes: writes, killed: killed, accepted: accepted(w.nats.Mutations()), middle: middle}
}

// accepted lists the mutating requests of the operator that took effect, without order:
// what may overtake what is not the point here.
func accepted(calls []natsserver.Call) []string {
	var out []string
	for _, c := range calls {
		if c.Err == "" && c.Client != bystander {
			out = append(out, fmt.Sprintf("%s %s/%s", c.Op, c.Stream, c.Consumer))
		}
	}
	slices.Sort(out)
	return out
}
