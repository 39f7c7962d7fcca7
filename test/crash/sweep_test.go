package crash

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/testenv"
)

// TestSweep kills the operator before and after each write of [scenarios.Life], the life of a
// Stream and of a Consumer that needs it, which package fault plays in memory. Each run must
// end as the undisturbed one did, with the same requests accepted by NATS, and in silence. The short form plays each fifth kill,
// before and after writes in turn, because package fault plays all; TRIMTAB_DEEP=1 plays each.
func TestSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, nats.CRDs)
	binary := operatortest.Build(t, operatorPackage)
	quiet := live(t, cfg, binary, point{})
	t.Logf("undisturbed: %d writes\n  %s", len(quiet.writes), strings.Join(quiet.writes, "\n  "))
	every := 5
	switch {
	case deep():
		every = 1
	case testing.Short():
		every = 15
	}
	for write := 1; write <= len(quiet.writes); write++ {
		for i, after := range []bool{false, true} {
			if (2*write+i)%every != 0 {
				continue
			}
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

// deep reports whether the long forms of tests run.
func deep() bool { return os.Getenv("TRIMTAB_DEEP") != "" }

// outcome is what one run of the scenario left to compare.
type outcome struct {
	writes   []string // of the operator, to both sides, in order
	killed   bool
	accepted []string // mutating requests that NATS accepted, sorted
	middle   state    // before deletion
}

// live plays the scenario with the operator killed at one point.
func live(t *testing.T, cfg *rest.Config, binary operatortest.Binary, at point) outcome {
	t.Helper()
	w := newInstallation(t, cfg, binary, at)
	var middle state
	for i, step := range w.story.Steps {
		w.play(step)
		if i == w.story.Whole {
			middle = w.state()
		}
	}
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
