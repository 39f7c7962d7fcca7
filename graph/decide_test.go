package graph_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/graph"
)

// node returns a wanted node that is ready, changed by some functions.
func node(key graph.Key, bend ...func(*graph.Node)) graph.Node {
	n := graph.Node{Key: key, Wanted: true}
	n.Facts = graph.Facts{Recorded: true, Presence: graph.Present, Applied: true, Health: graph.Current}
	for _, b := range bend {
		b(&n)
	}
	return n
}

// fresh is a node that was recorded and never applied, changed one with a new desired state, lost one
// that others deleted.
func fresh(n *graph.Node)   { n.Presence, n.Applied, n.Health = graph.Absent, false, graph.HealthUnknown }
func changed(n *graph.Node) { n.Change, n.Applied = graph.NeedsUpdate, false }
func lost(n *graph.Node)    { n.Presence, n.Health = graph.Absent, graph.HealthUnknown }
func drifted(n *graph.Node) { n.Change = graph.NeedsUpdate }
func replace(n *graph.Node) { n.Change, n.Applied = graph.NeedsRecreate, false }
func leaving(n *graph.Node) { n.Presence = graph.Leaving }
func unready(n *graph.Node) { n.Health = graph.InProgress }
func failed(n *graph.Node)  { n.Health = graph.Failed }
func unseen(n *graph.Node)  { n.Presence = graph.Unknown }
func worked(n *graph.Node)  { n.Completed = true }
func over(n *graph.Node)    { n.Ended = true }
func tried(n *graph.Node)   { n.Tried = true }
func refused(n *graph.Node) { n.Refused = "belongs to another" }
func held(n *graph.Node)    { n.Held = "2 instances exist" }
func old(n *graph.Node)     { n.Wanted = false }
func orphan(n *graph.Node)  { n.Orphan = true }
func bare(n *graph.Node)    { n.Recorded = false }

func wave(w int) func(*graph.Node)           { return func(n *graph.Node) { n.Apply = w } }
func purge(w int) func(*graph.Node)          { return func(n *graph.Node) { n.Purge = &w } }
func exit(w int) func(*graph.Node)           { return func(n *graph.Node) { n.Delete = w } }
func rank(r int) func(*graph.Node)           { return func(n *graph.Node) { n.Rank, n.DeleteRank = r, -r } }
func needs(k ...graph.Key) func(*graph.Node) { return func(n *graph.Node) { n.Needs = k } }

// lines describes a plan: "1 create a" is a step of the second turn.
func lines(p graph.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, fmt.Sprintf("%d %s %s", s.Turn, s.Action, s.Key))
	}
	for _, s := range p.Waiting {
		line := string(s.Key) + " waits"
		if s.Action != graph.None {
			line = fmt.Sprintf("%s %s waits", s.Action, s.Key)
		}
		for _, w := range s.On {
			line += fmt.Sprintf(" for %s: %s", w.Key, w.Why)
		}
		out = append(out, line)
	}
	switch {
	case p.Ready:
		out = append(out, "ready")
	case p.Settled:
		out = append(out, "settled")
	}
	return out
}

func TestCheckNamesEverything(t *testing.T) {
	nodes := []graph.Node{
		{Key: "a", Wanted: true, Needs: []graph.Key{"b"}},
		{Key: "b", Wanted: true, Needs: []graph.Key{"missing", "c", "missing"}},
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

func TestDecide(t *testing.T) {
	for _, table := range []map[string]rule{recording(), waves(), repairs(), purging(), departures(), blocked()} {
		for name, test := range table {
			t.Run(name, func(t *testing.T) {
				if diff := cmp.Diff(test.want, lines(graph.Decide(test.nodes))); diff != "" {
					t.Errorf("%s: (-want +got):\n%s", test.why, diff)
				}
			})
		}
	}
}

type rule struct {
	why   string
	nodes []graph.Node
	want  []string
}

func recording() map[string]rule {
	return map[string]rule{
		"nothing": {
			why:  "an empty graph has nothing left to do",
			want: []string{"ready"},
		},
		"all ready": {
			why:   "in sync, nothing is done",
			nodes: []graph.Node{node("a"), node("b", wave(1))},
			want:  []string{"ready"},
		},
		"record first": {
			why:   "all is recorded at once, and before anything is done",
			nodes: []graph.Node{node("a", fresh), node("b", fresh, bare), node("c", fresh, bare, wave(7)), node("d"), node("x", old)},
			want: []string{
				"0 record b", "1 record c",
				"a waits for b: is not recorded yet", "x waits for b: is not recorded yet",
			},
		},
		"record failed": {
			why:   "it is not tried again in this pass, and nothing else is done",
			nodes: []graph.Node{node("a", fresh), node("b", fresh, bare, tried)},
			want:  []string{"a waits for b: is not recorded yet", "record b waits for b: could not be changed at the last attempt"},
		},
		"neither wanted nor recorded": {
			why:   "nothing leads to it; it is not ours",
			nodes: []graph.Node{node("x", old, bare)},
			want:  []string{"ready"},
		},
	}
}

func waves() map[string]rule {
	return map[string]rule{
		"one wave": {
			why:   "ranks order the attempts; those of one rank have the same turn",
			nodes: []graph.Node{node("a", fresh, rank(2)), node("b", fresh, rank(1)), node("c", fresh, rank(1))},
			want:  []string{"0 create b", "0 create c", "1 create a"},
		},
		"the next wave waits": {
			why:   "waves are barriers, and any numbers will do",
			nodes: []graph.Node{node("a", unready, wave(-5)), node("b", fresh), node("c", fresh, wave(7))},
			want:  []string{"a waits for a: is not ready", "create b waits for a: is not ready", "create c waits for a: is not ready"},
		},
		"flicker": {
			why:   "a node of an earlier wave that is unready again holds waves that have not started, and no others",
			nodes: []graph.Node{node("a", failed), node("b", unready, wave(1)), node("c", changed, wave(2))},
			want:  []string{"a waits for a: has failed", "b waits for b: is not ready", "update c waits for a: has failed"},
		},
		"a failure stops what follows": {
			why:   "others of its wave go on",
			nodes: []graph.Node{node("a", fresh, tried), node("b", fresh), node("c", fresh, needs("a")), node("d", fresh, needs("c"))},
			want: []string{
				"0 create b", "create a waits for a: could not be changed at the last attempt",
				"create c waits for a: could not be changed at the last attempt", "create d waits for a: could not be changed at the last attempt",
			},
		},
		"first causes": {
			why: "a node names what is to be mended, not what waits as well; it names each once",
			nodes: []graph.Node{
				node("a", unready), node("b", refused, fresh), node("c", fresh, needs("a", "b")),
				node("d", fresh, needs("c", "a")), node("e", changed, wave(1), needs("b", "d")),
			},
			want: []string{
				"a waits for a: is not ready", "create b waits for b: belongs to another",
				"create c waits for a: is not ready for b: belongs to another", "create d waits for a: is not ready",
				"update e waits for a: is not ready for b: belongs to another",
			},
		},
		"waits for a step of this plan": {
			why:   "before the step is done it says so",
			nodes: []graph.Node{node("a", fresh), node("b", fresh, wave(1)), node("c", replace), node("d", changed, needs("c"))},
			want: []string{
				"0 create a", "0 recreate c",
				"update d waits for c: is not recreated yet", "create b waits for a: is not created yet",
			},
		},
		"needs nobody": {
			why:   "a contradiction that Check reports is no reason to hang without a word",
			nodes: []graph.Node{node("a", fresh, needs("missing")), node("b", fresh, needs("x")), node("c", fresh, needs("c")), node("x", old, needs("x"))},
			want: []string{
				"create a waits for missing: is not part of the graph", "create b waits for x: is to be deleted",
				"create c waits for c: waits for itself", "delete x waits for missing: is not part of the graph",
			},
		},
	}
}

func repairs() map[string]rule {
	return map[string]rule{
		"drift": {
			why:   "it is repaired while an earlier wave is unready",
			nodes: []graph.Node{node("a", unready), node("b", drifted, wave(1)), node("c", lost, wave(2), needs("a"))},
			want:  []string{"0 update b", "1 create c", "a waits for a: is not ready"},
		},
		"drift without what it needs": {
			why:   "what was deleted together comes back in its order",
			nodes: []graph.Node{node("a", lost), node("b", lost, needs("a"))},
			want:  []string{"0 create a", "create b waits for a: is not created yet"},
		},
		"recreate": {
			why:   "first it is deleted",
			nodes: []graph.Node{node("a", replace)},
			want:  []string{"0 recreate a"},
		},
		"recreate, second half": {
			why:   "it is created when it is gone",
			nodes: []graph.Node{node("a", replace, leaving), node("b", replace, fresh)},
			want:  []string{"0 create b", "create a waits for a: is being deleted"},
		},
		"recreate what is held": {
			why:   "to create it again is to delete it",
			nodes: []graph.Node{node("a", replace, held), node("b", changed, held)},
			want:  []string{"0 update b", "recreate a waits for a: 2 instances exist"},
		},
		"deleted by others": {
			why:   "it comes back when it is gone",
			nodes: []graph.Node{node("a", leaving)},
			want:  []string{"create a waits for a: is being deleted"},
		},
	}
}

func purging() map[string]rule {
	return map[string]rule{
		"before the end of the wave": {
			why:   "the wave is not over",
			nodes: []graph.Node{node("job", wave(1), purge(1)), node("b", unready, wave(1))},
			want:  []string{"b waits for b: is not ready", "complete job waits for b: is not ready"},
		},
		"at the end of the wave": {
			why:   "that it has worked is recorded first; the next wave waits until it is gone",
			nodes: []graph.Node{node("job", wave(1), purge(1)), node("b", fresh, wave(2))},
			want:  []string{"0 complete job", "create b waits for job: is not purged yet"},
		},
		"recorded": {
			why:   "then it is deleted",
			nodes: []graph.Node{node("job", wave(1), purge(1), worked), node("b", fresh, wave(2))},
			want:  []string{"0 purge job", "create b waits for job: is not purged yet"},
		},
		"purged": {
			why:   "it is not created again, and counts as ready",
			nodes: []graph.Node{node("job", wave(1), purge(1), worked, lost), node("b", fresh, wave(2), needs("job"))},
			want:  []string{"0 create b"},
		},
		"in a later wave": {
			why:   "it lives until that is over",
			nodes: []graph.Node{node("job", purge(3)), node("b", fresh, wave(3)), node("c", fresh, wave(4))},
			want:  []string{"0 create b", "complete job waits for b: is not created yet", "create c waits for b: is not created yet"},
		},
		"that has ended": {
			why:   "it is recorded before others can delete it",
			nodes: []graph.Node{node("job", purge(3), over), node("b", fresh, wave(3)), node("c", fresh, wave(4))},
			want:  []string{"0 create b", "1 complete job", "create c waits for b: is not created yet for job: is not purged yet"},
		},
		"that has ended, recorded": {
			why:   "it lives until the wave is over",
			nodes: []graph.Node{node("job", purge(3), over, worked), node("b", fresh, wave(3)), node("c", fresh, wave(4))},
			want:  []string{"0 create b", "purge job waits for b: is not created yet", "create c waits for b: is not created yet"},
		},
		"that has ended, recorded and deleted by others": {
			why:   "it is not missed",
			nodes: []graph.Node{node("job", purge(3), over, worked, lost), node("b", fresh, wave(3)), node("c", fresh, wave(4))},
			want:  []string{"0 create b", "create c waits for b: is not created yet"},
		},
		"beyond the last wave": {
			why:   "that is the end of the last, and what is not wanted goes after it",
			nodes: []graph.Node{node("job", purge(100)), node("x", old)},
			want:  []string{"0 complete job", "delete x waits for job: is not purged yet"},
		},
		"a new desired state": {
			why:   "it has not done that work",
			nodes: []graph.Node{node("job", purge(0), worked, fresh, changed)},
			want:  []string{"0 create job"},
		},
		"edited after its work": {
			why:   "it goes as it is",
			nodes: []graph.Node{node("job", purge(0), worked, drifted, failed)},
			want:  []string{"0 purge job"},
		},
		"not to be purged any more": {
			why:   "it is to stay, so it comes back",
			nodes: []graph.Node{node("job", worked, lost)},
			want:  []string{"0 create job"},
		},
		"ended by itself and gone": {
			why:   "a finished job is not missed, and what needs it goes on",
			nodes: []graph.Node{node("job", over, lost), node("b", fresh, wave(1), needs("job"))},
			want:  []string{"0 create b"},
		},
		"ended by itself and leaving": {
			why:   "it is about to be gone, which changes nothing",
			nodes: []graph.Node{node("job", over, leaving), node("b", fresh, wave(1))},
			want:  []string{"0 create b"},
		},
		"ended by itself, with a new desired state": {
			why:   "it has not done that work",
			nodes: []graph.Node{node("job", over, fresh, changed)},
			want:  []string{"0 create job"},
		},
		"ended by itself, edited": {
			why:   "as long as it exists, drift is repaired",
			nodes: []graph.Node{node("job", over, drifted)},
			want:  []string{"0 update job"},
		},
		"what needs it goes first": {
			why:   "if that is purged, too",
			nodes: []graph.Node{node("account", purge(0), worked), node("job", purge(0), worked, needs("account")), node("web", needs("account"))},
			want:  []string{"0 purge job", "purge account waits for job: is not purged yet"},
		},
		"with repairs of its wave": {
			why:   "purging ends the wave: it is attempted after all else, whatever its rank",
			nodes: []graph.Node{node("a", drifted, rank(1)), node("job", purge(0), worked, rank(1))},
			want:  []string{"0 update a", "1 purge job"},
		},
		"held": {
			why:   "purging is deleting",
			nodes: []graph.Node{node("job", purge(0), held), node("b", fresh, wave(1))},
			want:  []string{"complete job waits for job: 2 instances exist", "create b waits for job: 2 instances exist"},
		},
	}
}

func departures() map[string]rule {
	return map[string]rule{
		"after the wanted": {
			why:   "what replaces it must be ready; what is gone is forgotten at once",
			nodes: []graph.Node{node("a", unready), node("x", old), node("y", old, lost)},
			want:  []string{"0 forget y", "a waits for a: is not ready", "delete x waits for a: is not ready"},
		},
		"nothing is wanted": {
			why:   "all goes in the order of ranks, without waiting between them",
			nodes: []graph.Node{node("a", old, unready, rank(1)), node("b", old, failed, rank(2)), node("c", old, drifted, rank(2))},
			want:  []string{"0 delete b", "0 delete c", "1 delete a", "settled"},
		},
		"waves of deletion": {
			why:   "a wave begins when the one before it is gone; those of application do not count",
			nodes: []graph.Node{node("x", old, leaving, wave(1)), node("y", old, exit(1)), node("z", old, lost, exit(2))},
			want:  []string{"0 forget z", "delete x waits for x: is being deleted", "delete y waits for x: is being deleted", "settled"},
		},
		"the first that stays": {
			why:   "a later wave names the first in the order of deletion",
			nodes: []graph.Node{node("x", old, held), node("y", old, leaving, rank(1)), node("z", old, exit(1))},
			want: []string{
				"delete y waits for y: is being deleted", "delete x waits for x: 2 instances exist",
				"delete z waits for y: is being deleted", "settled",
			},
		},
		"needs": {
			why:   "what is needed stays until what needs it is gone",
			nodes: []graph.Node{node("a", old), node("b", old, needs("a")), node("c", old, leaving, needs("b"))},
			want:  []string{"delete a waits for c: is being deleted", "delete b waits for c: is being deleted", "delete c waits for c: is being deleted", "settled"},
		},
		"records contradict each other": {
			why:   "needs win over waves, and do not count in a cycle: all goes in the end",
			nodes: []graph.Node{node("a", old), node("b", old, exit(5), needs("a")), node("c", old, exit(6), needs("d")), node("d", old, exit(6), needs("c"))},
			want:  []string{"0 delete b", "delete a waits for b: is not deleted yet", "delete c waits for b: is not deleted yet", "delete d waits for b: is not deleted yet", "settled"},
		},
		"a cycle of records": {
			why:   "nobody would ever go",
			nodes: []graph.Node{node("c", old, needs("d")), node("d", old, needs("c"))},
			want:  []string{"0 delete c", "0 delete d", "settled"},
		},
		"orphans": {
			why:   "they are released, in their turn, even if they are leaving or held",
			nodes: []graph.Node{node("x", old, orphan, held), node("y", old, orphan, leaving), node("z", old, orphan, exit(1))},
			want:  []string{"0 release x", "0 release y", "release z waits for x: is not released yet", "settled"},
		},
		"held, to be deleted": {
			why: "it says why; what goes after it waits, the rest goes on",
			nodes: []graph.Node{
				node("crd", old, held), node("operator", old, needs("account")), node("account", old),
				node("last", old, exit(1)), node("base", old, needs(), exit(0)), node("instance", old, needs("crd")),
			},
			want: []string{
				"0 delete base", "0 delete instance", "0 delete operator",
				"delete account waits for operator: is not deleted yet", "delete crd waits for crd: 2 instances exist",
				"delete last waits for operator: is not deleted yet", "settled",
			},
		},
		"belongs to another": {
			why:   "it is not deleted; the record of one that does not exist is forgotten",
			nodes: []graph.Node{node("x", old, refused), node("y", old, refused, lost)},
			want:  []string{"0 forget y", "delete x waits for x: belongs to another", "settled"},
		},
	}
}

func blocked() map[string]rule {
	return map[string]rule{
		"not observed": {
			why:   "absence is proven, never assumed",
			nodes: []graph.Node{node("a", unseen), node("b", fresh, wave(1))},
			want:  []string{"a waits for a: is not observed yet", "create b waits for a: is not observed yet"},
		},
		"not observed, not wanted": {
			why:   "it may exist",
			nodes: []graph.Node{node("x", old, unseen)},
			want:  []string{"delete x waits for x: is not observed yet", "settled"},
		},
		"tried": {
			why:   "one attempt in a pass, whatever it was",
			nodes: []graph.Node{node("x", old, tried), node("y", old, lost, tried), node("z", old)},
			want: []string{
				"0 delete z", "delete x waits for x: could not be changed at the last attempt",
				"forget y waits for y: could not be changed at the last attempt", "settled",
			},
		},
		"refused": {
			why:   "it says why; what needs it waits",
			nodes: []graph.Node{node("a", refused), node("b", changed, needs("a")), node("c", fresh)},
			want:  []string{"0 create c", "a waits for a: belongs to another", "update b waits for a: belongs to another"},
		},
		"many causes": {
			why: "eight are enough",
			nodes: []graph.Node{
				node("a", unready), node("b", unready), node("c", unready), node("d", unready), node("e", unready),
				node("f", unready), node("g", unready), node("h", unready), node("i", unready),
				node("z", fresh, needs("a", "b", "c", "d", "e", "f", "g", "h", "i")),
			},
			want: []string{
				"a waits for a: is not ready", "b waits for b: is not ready", "c waits for c: is not ready", "d waits for d: is not ready",
				"e waits for e: is not ready", "f waits for f: is not ready", "g waits for g: is not ready", "h waits for h: is not ready",
				"i waits for i: is not ready",
				"create z waits for a: is not ready for b: is not ready for c: is not ready for d: is not ready" +
					" for e: is not ready for f: is not ready for g: is not ready for h: is not ready",
			},
		},
	}
}
