package graph

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// large returns nodes of ten waves, each with three needs in its own wave or before it.
func large(n int, wanted bool) []Node {
	rng := rand.New(rand.NewPCG(1, 2))
	nodes := make([]Node, n)
	key := func(i int) Key { return Key(fmt.Sprintf("apps/Deployment/shop/web-%05d", i)) }
	for i := range nodes {
		nodes[i] = Node{Key: key(i), Wanted: wanted, Apply: i * 10 / n, Delete: -i * 10 / n, Rank: rng.IntN(30), DeleteRank: rng.IntN(30)}
		nodes[i].Facts = Facts{Recorded: true, Presence: Present, Health: Current}
		if i%2 == 0 && wanted {
			nodes[i].Presence = Absent
		}
		for range min(i, 3) {
			nodes[i].Needs = append(nodes[i].Needs, key(rng.IntN(i)))
		}
	}
	rng.Shuffle(n, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

func BenchmarkDecide(b *testing.B) {
	synced := large(5_000, true)
	for i := range synced {
		synced[i].Presence = Present
	}
	tests := map[string][]Node{
		"in sync/5000": synced,
		"apply/5000":   large(5_000, true), "delete/5000": large(5_000, false),
		"apply/50000": large(50_000, true), "delete/50000": large(50_000, false),
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Decide(tests[name])
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	nodes := large(5_000, true)
	b.ReportAllocs()
	for b.Loop() {
		if err := Check(nodes); err != nil {
			b.Fatal(err)
		}
	}
}
