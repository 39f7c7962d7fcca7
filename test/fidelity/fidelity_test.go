//go:build !race

package fidelity

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/kubesim"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	// Requests that are refused are what this is about; the servers' log would be full of them.
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestCases plays what once made a difference, and must never again.
func TestCases(t *testing.T) {
	p := simulatedAndReal(t, 0)
	files, err := fs.Glob(os.DirFS("testdata"), "cases/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var s sequence
		if err := json.Unmarshal(raw, &s); err != nil || s.Why == "" || len(s.Ops) == 0 {
			t.Fatalf("%s must say why and have ops: %v", name, err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			diff, err := p.play(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if diff != "" {
				t.Errorf("once: %s\nnow again: %s", s.Why, diff)
			}
		})
	}
}

// TestSequences plays random sequences, always the same ones: 60, or with TRIMTAB_DEEP=1
// 10,000. One in four also has owners and every propagation.
func TestSequences(t *testing.T) {
	n := 60
	if os.Getenv("TRIMTAB_DEEP") != "" {
		n = 10_000
	}
	// A simulated server remembers all that ever happened, so none is used for ever.
	for part := range slices.Chunk(sequences(n), 1000) {
		t.Run("from seed "+strconv.FormatUint(part[0].Seed, 10), func(t *testing.T) {
			var pairs []*pair
			for i := range atOnce {
				pairs = append(pairs, simulatedAndReal(t, i))
			}
			run(t, pairs, part)
		})
	}
}

// TestItself plays sequences on one real server twice: what differs there is not the
// simulation's fault.
func TestItself(t *testing.T) {
	cfg := realServer(t)
	var pairs []*pair
	for i := range atOnce {
		pairs = append(pairs, &pair{
			a: newLane(t, "one", cfg, namespace("a", i)), b: newLane(t, "other", cfg, namespace("b", i)),
			shuffled: newLane(t, "again", cfg, namespace("c", i)),
		})
	}
	n := 12
	if os.Getenv("TRIMTAB_DEEP") != "" {
		n = 500
	}
	run(t, pairs, sequences(n))
}

// sequences makes n of them, those with owners last: the real garbage collector takes half a
// minute to learn of new kinds.
func sequences(n int) []sequence {
	var all []sequence
	for seed := range uint64(n) {
		all = append(all, generate(seed+1, seed%4 == 3))
	}
	slices.SortStableFunc(all, func(a, b sequence) int {
		return int(a.Seed%4+3)%4 - int(b.Seed%4+3)%4
	})
	return all
}

func simulatedAndReal(t *testing.T, i int) *pair {
	t.Helper()
	source := rand.NewPCG(0, 0)
	random := rand.New(source)
	pick := func(wanted []string) int { return random.IntN(len(wanted)) }
	p := &pair{
		a:        simulated(t, "kubesim", namespace("a", i), kubesim.Options{}, nil),
		b:        newLane(t, "real", realServer(t), namespace("b", i)),
		shuffled: simulated(t, "shuffled", namespace("c", i), kubesim.Options{Pick: pick}, nil),
	}
	p.shuffled.order = source.Seed // equal sequences see equal orders
	return p
}

// simulated is a lane on a simulated server of its own.
func simulated(t *testing.T, name, ns string, o kubesim.Options, wrap transport.WrapperFunc) *lane {
	t.Helper()
	o.CRDs = os.DirFS(filepath.Join("testdata", "crds"))
	sim := kubesim.New(t, o)
	cfg := sim.Config()
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	l := newLane(t, name, cfg, ns)
	l.collect = sim.Settle
	return l
}

// namespace is a name for a lane's namespace that this server has not seen.
func namespace(side string, i int) string {
	return fmt.Sprintf("f%s%d-%s", side, i, strconv.FormatInt(time.Now().UnixNano()%1e9, 36))
}

// withoutNodes is a control plane on which nothing is simulated: a load balancer, an Ingress
// controller and an autoscaler would write what the other side does not have.
//
//arch:state all tests share it
var withoutNodes struct {
	once    sync.Once
	cluster *controlplane.Cluster
	err     error
}

// realServer is a real server that serves the kinds of the sequences.
func realServer(t *testing.T) *rest.Config {
	t.Helper()
	var cfg *rest.Config
	if os.Getenv(testenv.EnvKubeconfig) != "" {
		cfg = testenv.Start(t)
	} else {
		withoutNodes.once.Do(func() {
			ctx := context.WithoutCancel(t.Context()) // it outlives the test that starts it
			withoutNodes.cluster, withoutNodes.err = controlplane.Start(ctx, controlplane.Options{
				Nodes: -1, Progress: controlplane.Print(os.Stderr),
			})
		})
		if withoutNodes.err != nil {
			t.Fatal(withoutNodes.err)
		}
		cfg = rest.CopyConfig(withoutNodes.cluster.Config)
	}
	testenv.InstallFS(t, cfg, os.DirFS(filepath.Join("testdata", "crds")))
	return cfg
}
