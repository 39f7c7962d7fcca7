package store

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// A Gate holds back the watch events of one client until somebody delivers them one by
// one. The zero value is ready. Events that make up a watch's initial state are not held.
type Gate struct {
	mu       sync.Mutex
	watchers []*watcher
	opened   int // watches, ever
	// Wake, if set before use, is called after an event came to be held.
	Wake func()
}

// Held is an event that waits at a gate.
type Held struct {
	w *watcher
	// Watch numbers the watches of the gate in the order they were opened.
	Watch int
	// Prefix is what the watch covers: "/secrets/" or "/demo.dev/databases/ns/".
	Prefix string
	// Change is the next of the watch.
	Change Change
}

type gateKey struct{}

// WithGate returns a context whose watches g holds back.
func WithGate(ctx context.Context, g *Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, g)
}

// Held returns the next event of each watch that has one, ordered by what the watches cover
// and, between equals, by when they were opened.
func (g *Gate) Held() []Held {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Held
	for _, w := range g.watchers {
		if len(w.held) > 0 && !w.ended() {
			out = append(out, Held{w: w, Watch: w.number, Prefix: w.prefix, Change: w.held[0]})
		}
	}
	slices.SortStableFunc(out, func(a, b Held) int { return strings.Compare(a.Prefix, b.Prefix) })
	return out
}

// Deliver lets an event through.
func (g *Gate) Deliver(h Held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(h.w.held) == 0 || h.w.held[0].Rev != h.Change.Rev {
		return
	}
	h.w.held = h.w.held[1:]
	h.w.push(h.Change)
}

// Repeat lets an event through once more that was delivered last: a watch may repeat itself.
func (g *Gate) Repeat(h Held) { h.w.push(h.Change) }

// Break ends the watch of that number, with 410 Gone if gone is set and as a closed
// connection otherwise. What it held is lost, as it is for a client that must list again.
func (g *Gate) Break(watch int, gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = slices.DeleteFunc(g.watchers, func(w *watcher) bool {
		if w.number != watch || w.ended() {
			return false
		}
		w.held = nil
		w.end(gone)
		return true
	})
}

// enter takes in a new watch; what it missed is held like all that follows.
func (g *Gate) enter(w *watcher, missed []Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened++
	w.number = g.opened
	w.held = missed
	g.watchers = append(g.watchers, w)
}

func (g *Gate) leave(w *watcher) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watchers = slices.DeleteFunc(g.watchers, func(o *watcher) bool { return o == w })
}

// hold keeps a change for a watch that has not ended.
func (g *Gate) hold(w *watcher, c Change) {
	g.mu.Lock()
	held := slices.Contains(g.watchers, w)
	if held {
		w.held = append(w.held, c)
	}
	g.mu.Unlock()
	if held && g.Wake != nil {
		g.Wake()
	}
}
