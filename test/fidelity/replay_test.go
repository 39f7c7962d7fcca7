//go:build !race

package fidelity

import (
	"context"
	"time"
)

// Two things in what a real server answers are chance: the order in which its garbage collector
// writes, and where a second ends. Managed fields have times of whole seconds and are sorted by
// them; whether a write that changes nothing else is one, and how an error quotes them, depends
// on these. So a difference counts only if the simulated server cannot make what the real one
// made: it plays the sequence again, in other orders and with seconds that end where the real
// one's did. Where garbage is collected, the real one must also make it a second time.

// mostReplayed is how many sequences there are to each that may need a replay: a few in ten
// thousand do.
const mostReplayed = 50

const (
	// orders is how often a sequence that collects garbage is replayed. Two writes race in few
	// sequences, more than two in hardly any.
	orders = 16
	// paces is how often another one is: by when requests were answered, by when they were
	// asked, and once more if this machine was too slow for either.
	paces = 3
)

// tries is how many replays are worth it. Without garbage only the end of a second is chance.
func tries(s sequence, a, b transcript) int {
	switch {
	case s.collects():
		return orders
	case a.crosses() || b.crosses():
		return paces
	}
	return 0
}

// replay plays a sequence in an order that depends on it and the try alone, at the pace of a
// transcript of it.
func (p *pair) replay(ctx context.Context, s sequence, of transcript, try int) (transcript, error) {
	if p.shuffled.order != nil {
		p.shuffled.order(s.Seed, uint64(try))
	}
	return p.shuffled.play(ctx, s, of.pace(try%2 == 1))
}

// pace tells before which requests a second ends.
type pace []bool

// pace is that of a transcript. A second that ended while a request was served ends before the
// request, or after it if asked is true: nobody knows when the server looked at its clock.
func (t transcript) pace(asked bool) pace {
	at := make(pace, len(t.steps))
	for i := 1; i < len(t.steps); i++ {
		before, now := t.steps[i-1], t.steps[i]
		at[i] = now.answered > before.answered
		if asked {
			at[i] = now.asked > before.asked
		}
	}
	return at
}

// crosses reports whether a second ended while a sequence was played.
func (t transcript) crosses() bool {
	n := len(t.steps)
	return n > 0 && t.steps[n-1].answered > t.steps[0].asked
}

// wait waits until the time for a request has come. The first one comes early in a second, so
// that the others have room. The servers look at the real clock, so there is no way around it.
func (at pace) wait(ctx context.Context, i int) error {
	now := time.Now()
	next := now.Truncate(time.Second).Add(time.Second)
	if at == nil || i == 0 && next.Sub(now) > time.Second/2 || i > 0 && !at[i] {
		return nil
	}
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
