package graph_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/graph"
)

// create answers each action with a node that is ready.
func create(context.Context, graph.Key, graph.Action) (graph.Facts, error) {
	return graph.Facts{Recorded: true, Presence: graph.Present, Applied: true, Health: graph.Current}, nil
}

func done(r graph.Result) []string {
	var out []string
	for _, s := range r.Done {
		out = append(out, fmt.Sprintf("%s %s", s.Action, s.Key))
	}
	return out
}

// What is ready at once does not hold up the next wave: one Run may do all waves.
func TestRunGoesOn(t *testing.T) {
	nodes := []graph.Node{
		node("c", fresh, wave(1)), node("a", fresh, rank(1)), node("b", fresh, needs("a")), node("x", old),
		node("d", replace, wave(2)),
	}
	before := slices.Clone(nodes)
	result := graph.Run(t.Context(), nodes, func(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
		switch action {
		case graph.Recreate, graph.Delete:
			return graph.Facts{Recorded: true, Presence: graph.Absent}, nil
		case graph.Forget:
			return graph.Facts{Presence: graph.Absent}, nil
		default:
			return create(ctx, key, action)
		}
	}, graph.Options{})
	want := []string{"create a", "create b", "create c", "recreate d", "create d", "delete x", "forget x"}
	if diff := cmp.Diff(want, done(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !result.Plan.Ready || len(result.Errors) > 0 {
		t.Errorf("ready %v, errors %v", result.Plan.Ready, result.Errors)
	}
	if diff := cmp.Diff(before, nodes); diff != "" {
		t.Errorf("Run changed the nodes it was given (-before +after):\n%s", diff)
	}
}

// Errors are complete: each failed attempt is one, and the others go on.
func TestRunErrors(t *testing.T) {
	denied := errors.New("denied")
	nodes := []graph.Node{
		node("a", fresh), node("b", fresh), node("c", fresh), node("d", fresh), node("e", fresh, wave(1)),
		node("f", fresh, needs("a")),
	}
	result := graph.Run(t.Context(), nodes, func(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
		switch key {
		case "a":
			return graph.Facts{}, denied
		case "b":
			panic("no such luck")
		case "c":
			runtime.Goexit()
		}
		return create(ctx, key, action)
	}, graph.Options{})
	want := []string{"create a", "create b", "create c", "create d"}
	if diff := cmp.Diff(want, done(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(result.Errors) != 3 || !errors.Is(result.Errors["a"], denied) {
		t.Errorf("errors: %v", result.Errors)
	}
	p, ok := errors.AsType[*graph.PanicError](result.Errors["b"])
	if !ok || p.Error() != "panic: no such luck" || !strings.Contains(string(p.Stack), "run_test.go") {
		t.Errorf("a panic became %v", result.Errors["b"])
	}
	if err := result.Errors["c"]; err == nil || !strings.Contains(err.Error(), `create of "c"`) {
		t.Errorf("the end of a goroutine became %v", err)
	}
	wantPlan := []string{
		"create a waits for a: could not be changed at the last attempt", "create b waits for b: could not be changed at the last attempt",
		"create c waits for c: could not be changed at the last attempt", "create f waits for a: could not be changed at the last attempt",
		"create e waits for a: could not be changed at the last attempt",
	}
	if diff := cmp.Diff(wantPlan, lines(result.Plan)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// What is not durable before the caller's pass ends is done once, and stays in the plan.
func TestRunNotDurable(t *testing.T) {
	nodes := []graph.Node{node("a", fresh, bare), node("b", fresh, bare, wave(1)), node("c")}
	result := graph.Run(t.Context(), nodes, func(_ context.Context, key graph.Key, _ graph.Action) (graph.Facts, error) {
		i := slices.IndexFunc(nodes, func(n graph.Node) bool { return n.Key == key })
		return nodes[i].Facts, nil
	}, graph.Options{})
	if diff := cmp.Diff([]string{"record a", "record b"}, done(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(result.Plan.Steps) != 2 || result.Plan.Ready {
		t.Errorf("plan: %+v", result.Plan)
	}
}

// Steps of a turn are done at the same time, but not more than the caller allows.
func TestRunParallel(t *testing.T) {
	tests := map[string]struct {
		why      string
		nodes    int
		parallel int
		most     int
		took     time.Duration
	}{
		"default": {why: "sixteen at a time", nodes: 500, most: 16, took: 32 * 20 * time.Millisecond},
		"one":     {why: "one after the other", nodes: 5, parallel: 1, most: 1, took: 100 * time.Millisecond},
		"few":     {why: "no more than there are", nodes: 3, most: 3, took: 20 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := make([]graph.Node, test.nodes)
				for i := range nodes {
					nodes[i] = node(graph.Key(fmt.Sprint(i)), fresh)
				}
				var mu sync.Mutex
				now, most, start := 0, 0, time.Now()
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					now += n
					most = max(most, now)
				}
				result := graph.Run(t.Context(), nodes, func(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
					count(1)
					defer count(-1)
					<-time.After(20 * time.Millisecond)
					return create(ctx, key, action)
				}, graph.Options{Parallel: test.parallel})
				if took := time.Since(start); most != test.most || took != test.took || !result.Plan.Ready {
					t.Errorf("%d at a time, %s, ready %v; want %d, %s, true (%s)", most, took, result.Plan.Ready, test.most, test.took, test.why)
				}
			})
		})
	}
}

// A rank begins when all attempts of the one before it have ended.
func TestRunRanks(t *testing.T) {
	nodes := []graph.Node{node("a", fresh, rank(2)), node("b", fresh, rank(1)), node("c", fresh, rank(1)), node("d", fresh, rank(3))}
	var mu sync.Mutex
	var order []graph.Key
	graph.Run(t.Context(), nodes, func(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, key)
		facts, err := create(ctx, key, action)
		facts.Health = graph.InProgress
		return facts, err
	}, graph.Options{})
	slices.Sort(order[:2])
	if diff := cmp.Diff([]graph.Key{"b", "c", "a", "d"}, order); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// When the context is done, no further step is started.
func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	nodes := []graph.Node{node("a", fresh), node("b", fresh), node("c", fresh, rank(1))}
	result := graph.Run(ctx, nodes, func(ctx context.Context, key graph.Key, action graph.Action) (graph.Facts, error) {
		cancel()
		return create(ctx, key, action)
	}, graph.Options{Parallel: 1})
	if diff := cmp.Diff([]string{"create a"}, done(result)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := len(result.Plan.Steps); left != 2 {
		t.Errorf("%d steps are left, want 2", left)
	}
}
