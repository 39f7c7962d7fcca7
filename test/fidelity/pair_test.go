//go:build !race

package fidelity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// atOnce is how many sequences are played at the same time.
const atOnce = 4

// pair is two lanes that ought to behave alike.
type pair struct {
	a, b *lane
	// shuffled is like a, for replays: its garbage collector works in another order each time.
	// The real one works with many hands. Nil if there are none.
	shuffled *lane
	ready    bool // to collect garbage of all kinds

	counts // of the sequences played
}

// counts say what sequences came to, by the answers of the second lane.
type counts struct {
	requests, accepted, events int
	replayed                   int // sequences that agree only in a replay
}

func (c *counts) add(o counts) {
	c.requests += o.requests
	c.accepted += o.accepted
	c.events += o.events
	c.replayed += o.replayed
}

func (c *counts) count(t transcript) {
	for _, st := range t.steps {
		c.requests++
		if st.answer.Code < http.StatusMultipleChoices {
			c.accepted++
		}
	}
	c.events += len(t.events)
}

func (c *counts) String() string {
	return fmt.Sprintf("%d requests, %d of them accepted; %d watch events; %d sequences agree only in a replay",
		c.requests, c.accepted, c.events, c.replayed)
}

// play plays a sequence on both sides and returns the difference.
func (p *pair) play(ctx context.Context, s sequence) (string, error) {
	if s.collects() && !p.ready {
		if err := errors.Join(p.a.ready(ctx), p.b.ready(ctx)); err != nil {
			return "", err
		}
		p.ready = true
	}
	diff, err := p.ask(ctx, s)
	if err != nil || diff == "" || p.shuffled == nil || !s.collects() {
		return diff, err
	}
	// The real garbage collector may do a thing late or twice. What the real server does not do
	// again when it is asked anew is nothing that a simulation could do.
	again, err := p.ask(ctx, s)
	if err != nil || again != "" {
		return diff, err
	}
	p.replayed++
	return "", nil
}

// ask plays a sequence on both sides once, and if they differ, the simulated side by chance as
// the real one did.
func (p *pair) ask(ctx context.Context, s sequence) (string, error) {
	a, err := p.a.play(ctx, s, nil)
	if err != nil {
		return "", err
	}
	b, err := p.b.play(ctx, s, nil)
	if err != nil {
		return "", err
	}
	p.count(b)
	want := normalize(b, s, p.b.ns)
	diff := difference(s, normalize(a, s, p.a.ns), want, p.a.name, p.b.name)
	if diff == "" || p.shuffled == nil {
		return diff, nil
	}
	for try := range tries(s, a, b) {
		again, err := p.replay(ctx, s, b, try)
		if err != nil {
			return "", err
		}
		if difference(s, normalize(again, s, p.shuffled.ns), want, "", "") == "" {
			p.replayed++
			return "", nil
		}
	}
	return diff, nil
}

// run plays the sequences on several pairs and reports each difference with the shortest
// sequence that still shows one.
func run(t *testing.T, pairs []*pair, sequences []sequence) {
	t.Helper()
	began := time.Now()
	var next, bad atomic.Int64
	var all sync.WaitGroup
	for _, p := range pairs {
		all.Go(func() {
			for bad.Load() < maxBad {
				i := int(next.Add(1)) - 1
				if i >= len(sequences) || t.Context().Err() != nil {
					return
				}
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
	var sum counts
	for _, p := range pairs {
		sum.add(p.counts)
	}
	played := min(int(next.Load()), len(sequences))
	if sum.replayed > 1+played/mostReplayed {
		t.Errorf("%d of %d sequences agree only in a replay; that many are no matter of chance", sum.replayed, played)
	}
	t.Logf("%d sequences in %s: %s; %d sequences with differences",
		played, time.Since(began).Round(time.Second), &sum, bad.Load())
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
	b, _ := json.Marshal(short) // it came from JSON
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
