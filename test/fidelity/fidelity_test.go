//go:build !race

package fidelity

import (
	"context"

	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/trimtab-dev/trimtab/kubesim"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	// Requests that are refused are what this is about; the servers' log would be full of them.
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// atOnce is how many sequences are played at the same time.
const atOnce = 4

// pair is two lanes that ought to behave alike.
type pair struct {
	a, b  *lane
	ready bool // to collect garbage of all kinds
}

// play plays a sequence on both sides and returns the difference.
func (p *pair) play(ctx context.Context, s sequence) (string, error) {
	if s.collects() && !p.ready {
		if err := errors.Join(p.a.ready(ctx), p.b.ready(ctx)); err != nil {
			return "", err
		}
		p.ready = true
	}
	a, err := p.a.play(ctx, s)
	if err != nil {
		return "", err
	}
	b, err := p.b.play(ctx, s)
	if err != nil {
		return "", err
	}
	return difference(s, normalize(a, s, p.a.ns), normalize(b, s, p.b.ns), p.a.name, p.b.name), nil
}

// run plays the sequences on several pairs and reports each difference with the shortest
// sequence that still shows one.
func run(t *testing.T, pairs []*pair, sequences []sequence) {
	t.Helper()
	began := time.Now()
	var next, requests, bad atomic.Int64
	var all sync.WaitGroup
	for _, p := range pairs {
		all.Go(func() {
			for bad.Load() < maxBad {
				i := int(next.Add(1)) - 1
				if i >= len(sequences) || t.Context().Err() != nil {
					return
				}
				requests.Add(int64(len(sequences[i].Ops)))
				same, err := p.judge(t, sequences[i])
				if !same {
					bad.Add(1)
				}
				if err != nil { // the lanes are in a state that nobody knows
					t.Errorf("seed %d: %v", sequences[i].Seed, err)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d sequences, %d requests, %d with differences, in %s", min(int(next.Load()), len(sequences)), requests.Load(), bad.Load(), time.Since(began))
}

// maxBad is how many differing sequences are enough to know.
const maxBad = 5

// judge plays one sequence and reports whether the sides agree.
func (p *pair) judge(t *testing.T, s sequence) (bool, error) {
	t.Helper()
	diff, err := p.play(t.Context(), s)
	if err != nil || diff == "" {
		return err == nil, err
	}
	short := p.shrink(t.Context(), s)
	again, err := p.play(t.Context(), short)
	if err != nil || again == "" {
		again = fmt.Sprintf("(the short sequence does not show it again: %v)", err)
	}
	b, _ := json.Marshal(short)
	t.Errorf("seed %d: the servers differ at %s\nThe shortest sequence with a difference; keep it in testdata/cases:\n%s\n%s", s.Seed, diff, b, again)
	return false, nil
}

// shrink drops requests while the sides differ.
func (p *pair) shrink(ctx context.Context, s sequence) sequence {
	for size := (len(s.Ops) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(s.Ops); {
			less := s
			less.Ops = append(append([]op(nil), s.Ops[:from]...), s.Ops[min(from+size, len(s.Ops)):]...)
			if diff, err := p.play(ctx, less); err == nil && diff != "" {
				s = less
				continue
			}
			from += size
		}
	}
	return s
}

// namespace is a name for a lane's namespace that this server has not seen.
func namespace(side string, i int) string {
	return fmt.Sprintf("f%s%d-%s", side, i, strconv.FormatInt(time.Now().UnixNano()%1e9, 36))
}

// real is a real server that serves the kinds of the sequences.
func realServer(t *testing.T) *rest.Config {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, os.DirFS(filepath.Join("testdata", "crds")))
	return cfg
}

func TestSimulated(t *testing.T) {
	cfg := realServer(t)
	var pairs []*pair
	for i := range atOnce {
		sim := kubesim.New(t, kubesim.Options{CRDs: os.DirFS(filepath.Join("testdata", "crds"))})
		pairs = append(pairs, &pair{a: newLane(t, "kubesim", sim.Config(), namespace("a", i)), b: newLane(t, "real", cfg, namespace("b", i))})
		pairs[i].a.collect = sim.Settle
	}
	n, _ := strconv.Atoi(os.Getenv("N"))
	var all []sequence
	for i := range max(n, 20) {
		all = append(all, generate(uint64(i+1), os.Getenv("OWN") != ""))
	}
	run(t, pairs, all)
}

func TestSelf(t *testing.T) {
	cfg := realServer(t)
	var pairs []*pair
	for i := range atOnce {
		pairs = append(pairs, &pair{a: newLane(t, "one", cfg, namespace("a", i)), b: newLane(t, "other", cfg, namespace("b", i))})
	}
	n, _ := strconv.Atoi(os.Getenv("N"))
	var all []sequence
	for i := range max(n, 20) {
		all = append(all, generate(uint64(i+1), os.Getenv("OWN") != ""))
	}
	run(t, pairs, all)
}
