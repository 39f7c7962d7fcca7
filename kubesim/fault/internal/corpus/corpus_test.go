package corpus

import (
	"embed"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

//go:embed crds roles
var embedded embed.FS

// manifests are the files in a folder. They are part of the test binary, so go test knows when one has changed.
func manifests(folder string) fs.FS {
	files, err := fs.Sub(embedded, folder)
	if err != nil {
		panic(err)
	}
	return files
}

// item returns the Item that stories here are about.
func item() *Item {
	return &Item{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: Spec{Size: 1, Text: "one"}}
}

// story is the common scenario: create, change, delete.
func story(name string, operator func(ctrl.Manager, *fault.Env) error) fault.Scenario {
	i := item()
	return fault.Scenario{
		Name:        name,
		Operator:    fault.Operator{CRDs: manifests("crds"), AddToScheme: AddToScheme, SetUp: operator},
		ExternalAPI: NewCloud,
		Steps: []fault.Step{
			fault.Create(i),
			fault.Merge(i, `{"spec":{"size":2}}`),
			fault.Delete(i),
		},
	}
}

// detection is what it took to find something.
type detection struct {
	// broken are the invariants that broke, sorted.
	broken []string
	// kinds are the kinds of schedules that broke one, "" for the undisturbed run.
	kinds []fault.Kind
	// first is the shortest schedule that broke one.
	first     string
	schedules int
	// cpu is the time that processors spent on all of it. On an idle machine with two of them
	// it takes little more than half of that.
	cpu time.Duration
}

// deep reports whether the long forms of tests run.
func deep() bool { return os.Getenv("TRIMTAB_DEEP") != "" }

// some limits schedules that are to find nothing: the short form plays so many, spread over all kinds, TRIMTAB_DEEP=1 all.
func some() fault.Option {
	if deep() {
		return fault.AtMost(0)
	}
	return fault.AtMost(24)
}

// explore plays a scenario and sums up what came of it.
func explore(t *testing.T, s fault.Scenario, kinds ...fault.Kind) detection {
	t.Helper()
	return exploreWith(t, s, fault.Only(kinds...))
}

func exploreWith(t *testing.T, s fault.Scenario, o ...fault.Option) detection {
	t.Helper()
	before := spent(t)
	r := fault.Explore(t, s, o...)
	d := detection{cpu: spent(t) - before, first: "-"}
	for _, n := range r.Schedules {
		d.schedules += n
	}
	for _, f := range r.Findings {
		d.kinds = append(d.kinds, kindOf(t, f))
		for _, v := range f.Violations {
			d.broken = append(d.broken, string(v.Invariant))
		}
	}
	if len(r.Findings) > 0 {
		d.first = r.Findings[0].Token
		if !strings.HasSuffix(d.first, "/") { // otherwise it is about all runs and has no schedule to replay
			replays(t, s, r.Findings[0])
		}
	}
	slices.Sort(d.broken)
	d.broken = slices.Compact(d.broken)
	slices.Sort(d.kinds)
	d.kinds = slices.Compact(d.kinds)
	t.Logf("%s: %d of %d schedules broke %v, the shortest %s, CPU time %v", s.Name, len(r.Findings), d.schedules, d.broken, d.first, d.cpu.Round(time.Millisecond))
	if testing.Verbose() && len(r.Findings) > 0 {
		t.Log(r.Findings[0].Text)
	}
	return d
}

// kindOf is the kind of a finding's schedule, "" if that is the undisturbed run.
func kindOf(t *testing.T, f fault.Finding) fault.Kind {
	t.Helper()
	if strings.HasSuffix(f.Token, "/") {
		return ""
	}
	_, s, err := schedule.Parse(f.Token)
	if err != nil {
		t.Fatal(err)
	}
	return fault.Kind(s.Family())
}

// replays plays what a report says to play and wants to see the same invariant broken.
func replays(t *testing.T, s fault.Scenario, f fault.Finding) {
	t.Helper()
	if err := flag.Set("fault.replay", f.Token); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("fault.replay", "") }() // it was accepted before
	for _, again := range fault.Explore(t, s).Findings {
		if slices.ContainsFunc(again.Violations, func(v fault.Violation) bool { return v.Invariant == f.Violations[0].Invariant }) {
			return
		}
	}
	t.Errorf("the replay of %s does not break %s again", f.Token, f.Violations[0].Invariant)
}

// spent is the time that processors have spent on this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
