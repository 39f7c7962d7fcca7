package invariant_test

import (
	"fmt"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// TestMany proves that a sentence on what there is too much of names some of it and counts the rest.
func TestMany(t *testing.T) {
	var names []string
	for i := range 15 {
		names = append(names, fmt.Sprintf("n-%02d", i+1))
	}
	queues := func(s *story, names ...string) {
		var all []history.Resource
		for _, n := range names {
			all = append(all, s.queue(n, 1))
		}
		s.external("operator", all...)
	}
	const some = "(n-01, n-02, n-03, n-04, n-05, n-06, n-07, n-08, n-09, n-10, and 5 more)"
	judge(t, map[string]tale{
		"objects": {
			why: "the cache does not show them", run: add("config", both(workers(names...), func(s *story) {
				for _, n := range names {
					s.put("operator", "pods default/"+n, "")
				}
			})), want: []string{"I3: 15 equal pods at once " + some},
		},
		"at once": {
			why: "they have no names", run: on("make", func(s *story) { queues(s, names...) }),
			want: []string{"I3: 15 external resources of kind \"queue\" at once " + some, "I1"},
		},
		"one after the other": {
			why: "each is removed", want: []string{"I3: created 16 times for databases.demo.dev default/shop (q-1, n-01, n-02, n-03, n-04, n-05, n-06, n-07, n-08, n-09, and 6 more)"},
			run: add("make", func(s *story) {
				for _, n := range names {
					queues(s)
					queues(s, n)
				}
				queues(s)
				s.external("user", s.queue("q-1", 1))
			}),
		},
	})
}
