package crash

import (
	"fmt"
	"sync"
)

// point is a moment of the operator's life at which it is killed.
type point struct {
	// write is the number of the write, from 1. Zero is never.
	write int
	// after is true for a kill once the write took effect, before the operator knows.
	after bool
}

func (p point) String() string {
	if p.after {
		return fmt.Sprintf("after write %d", p.write)
	}
	return fmt.Sprintf("before write %d", p.write)
}

// gate lets writes of the operator pass, counts them, and kills it once at its point.
type gate struct {
	at   point
	kill func()

	mu     sync.Mutex
	writes []string
	killed bool
}

// enter is called before a write; false means that it must not happen.
func (g *gate) enter(what string) (n int, pass bool) {
	g.mu.Lock()
	g.writes = append(g.writes, what)
	n = len(g.writes)
	hit := !g.at.after && g.hits(n)
	g.mu.Unlock()
	if hit {
		g.kill()
	}
	return n, !hit
}

// leave is called after write n took effect; false means that nobody may hear of it.
func (g *gate) leave(n int) bool {
	g.mu.Lock()
	hit := g.at.after && g.hits(n)
	g.mu.Unlock()
	if hit {
		g.kill()
	}
	return !hit
}

func (g *gate) hits(n int) bool {
	if g.killed || n != g.at.write {
		return false
	}
	g.killed = true
	return true
}

// seen returns the writes so far, and whether the point was reached.
func (g *gate) seen() ([]string, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.writes...), g.killed
}
