package graph_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/graph"
)

func TestCheckNamesEverything(t *testing.T) {
	nodes := []graph.Node{
		{Key: "a", Wanted: true, Needs: []graph.Key{"b"}},
		{Key: "b", Wanted: true, Needs: []graph.Key{"c", "missing"}},
		{Key: "c", Wanted: true, Needs: []graph.Key{"a"}, Apply: 1, Delete: 1},
		{Key: "d", Wanted: true},
		{Key: "d", Wanted: true},
		{Key: "e", Wanted: true, Apply: 1, Purge: new(0)},
		{Key: "f", Wanted: true, Needs: []graph.Key{"f"}},
		{Key: "old", Needs: []graph.Key{"old"}},
	}
	want := `"d" occurs more than once
"b" (applied in wave 0) needs "c", which is applied later (wave 1)
"b" needs "missing", which is not part of the graph
"c" (deleted in wave 1) needs "a", which is deleted earlier (wave 0)
"e" is purged in wave 0, before wave 1 in which it is applied
these need each other: a → b → c → a
these need each other: f → f`
	err := graph.Check(nodes)
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := graph.Check(nodes[3:4]); err != nil {
		t.Errorf("a graph without contradictions: %v", err)
	}
}
