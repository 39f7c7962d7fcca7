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

// orders is how many orders of garbage collection are tried before a difference counts. Two
// of its writes race in few sequences, more than two in hardly any.
const orders = 16

// pair is two lanes that ought to behave alike.
type pair struct {
	a, b *lane
	// shuffled is like a, with a garbage collector that works in another order each time.
	// The real one works with many hands. Nil if a is such a one itself.
	shuffled *lane
	ready    bool // to collect garbage of all kinds

	counts // of the sequences played
}

// counts say what sequences came to, by the answers of the second lane.
type counts struct {
	requests, accepted, events int
	reordered                  int // sequences that agree in another order of garbage collection
}

func (c *counts) add(o counts) {
	c.requests += o.requests
	c.accepted += o.accepted
	c.events += o.events
	c.reordered += o.reordered
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
	return fmt.Sprintf("%d requests, %d of them accepted; %d watch events; %d sequences agree in another order of garbage collection",
		c.requests, c.accepted, c.events, c.reordered)
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
	p.count(b)
	want := normalize(b, s, p.b.ns)
	diff := difference(s, normalize(a, s, p.a.ns), want, p.a.name, p.b.name)
	if diff == "" || p.shuffled == nil || !s.collects() {
		return diff, nil
	}
	for range orders {
		again, err := p.shuffled.play(ctx, s)
		if err != nil {
			return "", err
		}
		if difference(s, normalize(again, s, p.shuffled.ns), want, "", "") == "" {
			p.reordered++
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
	t.Logf("%d sequences in %s: %s; %d sequences with differences",
		min(int(next.Load()), len(sequences)), time.Since(began).Round(time.Second), &sum, bad.Load())
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
