package graph

import (
	"slices"
	"strings"
	"testing"
)

// mutant returns a way to decide that is wrong: about other nodes than there are, or with another plan.
func mutant(node func(*Node), plan func([]Node, *Plan)) func([]Node) Plan {
	return func(nodes []Node) Plan {
		bent := slices.Clone(nodes)
		for i := range bent {
			if node != nil {
				node(&bent[i])
			}
		}
		p := Decide(bent)
		if plan != nil {
			plan(nodes, &p)
		}
		return p
	}
}

// without returns a mutant whose plan lacks the steps that a function finds.
func without(lacks func(nodes naive, s Step) bool) func([]Node) Plan {
	return mutant(nil, func(nodes []Node, p *Plan) {
		p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return lacks(nodes, s) })
	})
}

// instead returns a mutant that does one thing instead of another.
func instead(of, do Action) func([]Node) Plan {
	return mutant(nil, func(_ []Node, p *Plan) {
		for i := range p.Steps {
			if p.Steps[i].Action == of {
				p.Steps[i].Action = do
			}
		}
	})
}

// TestModelTeeth breaks each rule. If no walk of [TestModel] found that, the walks would prove nothing
// about the rule.
func TestModelTeeth(t *testing.T) {
	tests := map[string]struct {
		why    string
		finds  string // part of what is found
		decide func([]Node) Plan
	}{
		"acts without a record": {
			why: "after a crash nothing leads to what was created", finds: "without a record",
			decide: mutant(func(n *Node) { n.Recorded = true }, nil),
		},
		"records one at a time": {
			why: "something is created before all is recorded", finds: "is recorded",
			decide: func(nodes []Node) Plan {
				return Decide(slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Wanted && !n.Recorded && n.Apply > 0 }))
			},
		},
		"ignores waves": {
			why: "a wave begins before the one before it is ready", finds: "is ready",
			decide: mutant(func(n *Node) { n.Apply = 0 }, nil),
		},
		"ignores the first wave": {
			why: "the wave after it begins too early", finds: "is ready",
			decide: mutant(func(n *Node) { n.Apply = max(n.Apply, 1) }, nil),
		},
		"ignores what a node needs": {
			why: "it is created before that", finds: "which needs",
			decide: mutant(func(n *Node) {
				if n.Wanted {
					n.Needs = nil
				}
			}, nil),
		},
		"takes what exists for ready": {
			why: "what follows finds it unready", finds: "is ready",
			decide: mutant(func(n *Node) { n.Health = Current }, nil),
		},
		"takes what failed for ready": {
			why: "what follows is built on a failure", finds: "is ready",
			decide: mutant(func(n *Node) {
				if n.Health == Failed {
					n.Health = Current
				}
			}, nil),
		},
		"takes an old version for ready": {
			why: "what follows is built on the old one", finds: "is ready",
			decide: mutant(nil, func(nodes []Node, p *Plan) {
				bent := slices.Clone(nodes)
				for i := range bent {
					bent[i].Change = NoChange
				}
				p.Steps = append(slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Action == Create }),
					slices.DeleteFunc(Decide(bent).Steps, func(s Step) bool { return s.Action != Create })...)
			}),
		},
		"takes everything for drift": {
			why: "a new version is not held by waves", finds: "is ready",
			decide: mutant(func(n *Node) { n.Applied = true }, nil),
		},
		"takes drift for a new version": {
			why: "what was deleted by others stays away while an earlier wave is unready", finds: "could have been done",
			decide: mutant(func(n *Node) { n.Applied = n.Completed && n.Applied }, nil),
		},
		"forgets what it purged": {
			why: "a job runs twice", finds: "has done its work",
			decide: mutant(func(n *Node) { n.Completed = n.Completed && n.Presence != Absent }, nil),
		},
		"purges before that is recorded": {
			why: "after a crash a job runs twice", finds: "before that is recorded",
			decide: instead(Complete, Purge),
		},
		"purges too early": {
			why: "a later wave still needs it", finds: "complete of",
			decide: mutant(func(n *Node) {
				if n.Purge != nil {
					n.Purge = new(n.Apply)
				}
			}, nil),
		},
		"purges too late": {
			why: "the next wave finds it still there", finds: "is purged",
			decide: mutant(func(n *Node) {
				if n.Purge != nil {
					n.Purge = new(never)
				}
			}, nil),
		},
		"never purges": {
			why: "a job stays", finds: "is not purged",
			decide: mutant(func(n *Node) { n.Purge = nil }, nil),
		},
		"deletes before the rest is ready": {
			why: "what replaces a node is not ready yet", finds: "is ready",
			decide: func(nodes []Node) Plan {
				p := Decide(nodes)
				if p.Settled || len(p.Steps) > 0 {
					return p
				}
				return Decide(slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool { return n.Wanted }))
			},
		},
		"ignores delete waves": {
			why: "a wave goes before the one before it is gone", finds: "earlier wave",
			decide: mutant(func(n *Node) { n.Delete = 0 }, nil),
		},
		"deletes in the waves of application": {
			why: "the two are independent", finds: "earlier wave",
			decide: mutant(func(n *Node) { n.Delete = n.Apply }, nil),
		},
		"deletes what is needed": {
			why: "what needs it cannot be deleted any more", finds: "needs",
			decide: mutant(func(n *Node) {
				if !n.Wanted {
					n.Needs = nil
				}
			}, nil),
		},
		"takes leaving for gone": {
			why: "a finalizer of others still holds it", finds: "leaving:true",
			decide: mutant(func(n *Node) {
				if n.Presence == Leaving {
					n.Presence = Absent
				}
			}, nil),
		},
		"takes leaving for present": {
			why: "it is deleted again and again", finds: "is leaving",
			decide: mutant(func(n *Node) {
				if n.Presence == Leaving {
					n.Presence = Present
				}
			}, nil),
		},
		"takes unknown for absent": {
			why: "what was not observed is forgotten or created again", finds: "not observed",
			decide: mutant(func(n *Node) {
				if n.Presence == Unknown {
					n.Presence = Absent
				}
			}, nil),
		},
		"deletes orphans": {
			why: "what was to be kept is lost", finds: "treated otherwise",
			decide: mutant(func(n *Node) { n.Orphan = false }, nil),
		},
		"deletes what is held": {
			why: "what holds it is lost", finds: "is held",
			decide: mutant(func(n *Node) { n.Held = "" }, nil),
		},
		"touches what is refused": {
			why: "it belongs to another", finds: "ours:false",
			decide: mutant(func(n *Node) { n.Refused = "" }, nil),
		},
		"stops everything for one that is held": {
			why: "the rest could go", finds: "could have been done",
			decide: without(func(nodes naive, s Step) bool {
				return s.Action == Delete && slices.ContainsFunc(nodes, func(n Node) bool { return !n.Wanted && n.Held != "" })
			}),
		},
		"stops everything for a failed attempt": {
			why: "one denied object keeps all others of its wave away", finds: "could have been done",
			decide: without(func(nodes naive, _ Step) bool {
				return slices.ContainsFunc(nodes, func(n Node) bool { return n.Tried })
			}),
		},
		"does not create what it deleted": {
			why: "a hole for ever", finds: "could have been done",
			decide: without(func(nodes naive, s Step) bool {
				n, _ := nodes.find(s.Key)
				return s.Action == Create && n.Applied
			}),
		},
		"never forgets": {
			why: "the component is deleted for ever", finds: "could have been done",
			decide: without(func(_ naive, s Step) bool { return s.Action == Forget }),
		},
		"updates what has to be created again": {
			why: "immutable fields cannot be updated", finds: "has to be created again",
			decide: instead(Recreate, Update),
		},
		"ignores ranks": {
			why: "a service account is created after its workload", finds: "before create of",
			decide: mutant(func(n *Node) { n.Rank = 0 }, nil),
		},
		"ignores ranks of deletion": {
			why: "the reverse at deletion", finds: "before delete of",
			decide: mutant(func(n *Node) { n.DeleteRank = 0 }, nil),
		},
		"waits within a wave": {
			why: "ranks order attempts, and nothing else", finds: "could have been done",
			decide: mutant(func(n *Node) {
				if !n.Applied {
					n.Apply = n.Apply*10 + n.Rank
				}
				if n.Purge != nil {
					n.Purge = new(*n.Purge*10 + 9)
				}
			}, nil),
		},
		"follows the order in which it is asked": {
			why: "the plan differs from pass to pass", finds: "another order",
			decide: mutant(nil, func(nodes []Node, p *Plan) {
				slices.SortStableFunc(p.Steps, func(a, b Step) int {
					at := func(key Key) int { return slices.IndexFunc(nodes, func(n Node) bool { return n.Key == key }) }
					return at(a.Key) - at(b.Key)
				})
			}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(300) {
				for _, strict := range []bool{true, false} {
					if problem := walk(t.Context(), seed, test.decide, strict); strings.Contains(problem, test.finds) {
						return
					}
				}
			}
			t.Errorf("no walk finds %q (%s)", test.finds, test.why)
		})
	}
}
