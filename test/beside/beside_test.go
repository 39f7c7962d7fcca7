package beside

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/test/internal/audit"
)

// figures are what one operator costs, for each life of an object (created, Ready, updated, deleted)
// or for each drift check.
type figures struct {
	writes, events, reads, calls float64       // for each life; reads are of objects
	cpu, server                  time.Duration // for each life
	created, updated, deleted    time.Duration // until the last object
	peak                         float64       // MiB
	checks                       int           // calls in the quiet time
	asked                        audit.Requests
	checkCPU                     time.Duration // for each check
}

// measure runs an operator through the lives of all objects, and a second process through a quiet
// time with drift checks.
func measure(t *testing.T, binary operatortest.Binary, l load) figures {
	t.Helper()
	m := newMeasurement(t, binary, l)
	f := m.lives()
	m.drift(&f)
	return f
}

func (m *measurement) lives() figures {
	m.t.Helper()
	var f figures
	p := m.start(time.Hour)
	m.pause(settling) // what a start costs is over
	from, cpu, server := m.audit.Fence(m.t, m.client), cpuOf(m.t, p.PID()), cpuOf(m.t, m.cluster.PID)
	f.created = m.createAll()
	f.updated = m.updateAll()
	f.deleted = m.deleteAll()
	m.pause(settling)
	n := time.Duration(m.load.objects)
	f.cpu, f.server = (cpuOf(m.t, p.PID())-cpu)/n, (cpuOf(m.t, m.cluster.PID)-server)/n
	f.peak = peakOf(m.t, p.PID())
	p.Stop() // nothing is under way after this
	asked := m.audit.Between(from, m.audit.Fence(m.t, m.client), m.account.User)
	each := func(kind audit.Kind) float64 { return float64(len(asked.Of(kind))) / float64(m.load.objects) }
	f.writes, f.events, f.reads = each(audit.Write), each(audit.Event), each(audit.Read)
	f.calls = float64(m.calls()) / float64(m.load.objects)
	if left := m.cloud.Len(); left > 0 {
		m.t.Errorf("%d items are left behind", left)
	}
	return f
}

// calls returns the number of calls of the external API so far.
func (m *measurement) calls() int {
	sum := 0
	for _, n := range m.cloud.Calls() {
		sum += n
	}
	return sum
}

// drift measures a time in which nothing changes.
func (m *measurement) drift(f *figures) {
	m.t.Helper()
	p := m.start(m.load.interval)
	m.createAll()
	m.pause(settling + m.load.interval)
	from, calls, cpu := m.audit.Fence(m.t, m.client), m.calls(), cpuOf(m.t, p.PID())
	m.pause(m.load.quiet)
	if !poll.Until(func() bool { return m.calls()-calls >= m.load.objects }) {
		m.t.Error("drift is not checked")
	}
	f.checks = m.calls() - calls
	f.checkCPU = (cpuOf(m.t, p.PID()) - cpu) / time.Duration(max(1, f.checks))
	f.asked = m.audit.Between(from, m.audit.Fence(m.t, m.client), m.account.User).
		Of(audit.Write, audit.Read) // events may be late
	p.Stop()
}

// small is enough to count.
func small() load {
	return load{objects: 20, workers: 10, interval: time.Second, quiet: 2 * time.Second}
}

// large is enough to measure time.
func large() load {
	return load{objects: 1000, workers: 10, interval: 5 * time.Second, quiet: 15 * time.Second}
}

// operators are built once.
func operators(t *testing.T) (ours, bare operatortest.Binary) {
	t.Helper()
	const commands = "github.com/trimtab-dev/trimtab/test/beside/cmd/"
	return operatortest.Build(t, commands+"ours"), operatortest.Build(t, commands+"bare")
}

// TestCounts asserts what does not depend on the machine: requests and calls.
func TestCounts(t *testing.T) {
	ours, bare := operators(t)
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		f := measure(t, bare, small())
		t.Log(f)
		if f.writes != 4 || f.events != 0 || f.reads != 0 || f.calls != 3 || len(f.asked) > 0 {
			t.Errorf("%s\nwant 4 writes, no event, no read, 3 calls, and no request for drift checks: %s", f, f.asked)
		}
	})
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		f := measure(t, ours, small())
		t.Log(f)
		most := 4.0
		if f.created+f.updated+f.deleted > 10*time.Second { // what was returned so long ago is read again
			most = 6
		}
		if f.writes != 4 || f.events > 1 || f.calls > most || len(f.asked) > 0 {
			t.Errorf("%s\nwant 4 writes, at most 1 event and %.0f calls, and no request for drift checks: %s", f, most, f.asked)
		}
		if f.reads*float64(small().objects) > 1 { // once in a process: which cluster this is
			t.Errorf("%s\nwant no read of objects", f)
		}
	})
}

// rounds are an odd number, so that there is a median.
const rounds = 3

// TestCosts prints what both cost under load. Set TRIMTAB_DEEP=1 to run it; it takes minutes, and its
// times mean nothing while the machine does other work.
func TestCosts(t *testing.T) {
	if os.Getenv("TRIMTAB_DEEP") != "1" {
		t.Skip("set TRIMTAB_DEEP=1 to measure; this takes minutes")
	}
	ours, bare := operators(t)
	var byOurs, byBare []figures
	for round := range rounds {
		turns := []func(){
			func() { t.Run("bare", func(t *testing.T) { byBare = append(byBare, measure(t, bare, large())) }) },
			func() { t.Run("ours", func(t *testing.T) { byOurs = append(byOurs, measure(t, ours, large())) }) },
		}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			turn()
		}
		if t.Failed() {
			return
		}
		t.Logf("round %d\nours: %s\nbare: %s", round+1, byOurs[round], byBare[round])
	}
	t.Logf("%d objects, %d workers, medians of %d rounds\n%s", large().objects, large().workers, rounds, table(byOurs, byBare))
}

// String returns all figures in one line.
func (f figures) String() string {
	return fmt.Sprintf("%.2f writes, %.2f events, %.2f reads and %.2f calls a life; CPU %s of the operator and %s of the API server; "+
		"last Ready %s, updated %s, deleted %s; %.0f MiB; %d checks at %s CPU, %d requests", f.writes, f.events, f.reads, f.calls, f.cpu, f.server,
		f.created.Round(time.Millisecond), f.updated.Round(time.Millisecond), f.deleted.Round(time.Millisecond), f.peak, f.checks, f.checkCPU, len(f.asked))
}

// table compares medians, with the median of the rounds' ratios.
func table(ours, bare []figures) string {
	rows := []struct {
		name, unit string
		of         func(figures) float64
	}{
		{"Kubernetes writes per life", "", func(f figures) float64 { return f.writes }},
		{"Kubernetes events per life", "", func(f figures) float64 { return f.events }},
		{"external calls per life", "", func(f figures) float64 { return f.calls }},
		{"CPU of the operator per life", "ms", func(f figures) float64 { return milliseconds(f.cpu) }},
		{"CPU of the API server per life", "ms", func(f figures) float64 { return milliseconds(f.server) }},
		{"last object Ready", "s", func(f figures) float64 { return f.created.Seconds() }},
		{"last object updated", "s", func(f figures) float64 { return f.updated.Seconds() }},
		{"last object deleted", "s", func(f figures) float64 { return f.deleted.Seconds() }},
		{"largest resident set", "MiB", func(f figures) float64 { return f.peak }},
		{"Kubernetes requests per drift check", "", func(f figures) float64 { return float64(len(f.asked)) / float64(f.checks) }},
		{"CPU of the operator per drift check", "µs", func(f figures) float64 { return 1000 * milliseconds(f.checkCPU) }},
	}
	var b strings.Builder
	b.WriteString("| | ours | bare | ratio |\n|---|---|---|---|\n")
	for _, r := range rows {
		var mine, theirs, ratios []float64
		for i := range ours {
			mine, theirs = append(mine, r.of(ours[i])), append(theirs, r.of(bare[i]))
			ratios = append(ratios, r.of(ours[i])/r.of(bare[i]))
		}
		name := r.name
		if r.unit != "" {
			name += ", " + r.unit
		}
		ratio := fmt.Sprintf("%.2f", median(ratios))
		if q := median(ratios); math.IsNaN(q) || math.IsInf(q, 0) {
			ratio = ""
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %s |\n", name, median(mine), median(theirs), ratio)
	}
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
