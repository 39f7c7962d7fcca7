package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestFights: another reverts an object every second. The clock is the test's.
func TestFights(t *testing.T) {
	for name, test := range map[string]struct {
		why      string
		managers func(i int) []string
		want     []int // corrections in each of six minutes
	}{
		"one manager":     {"after four corrections there is one a minute", func(int) []string { return []string{"them"} }, []int{5, 1, 1, 1, 1, 1}},
		"somebody":        {"deletions have no manager", func(int) []string { return nil }, []int{5, 1, 1, 1, 1, 1}},
		"many managers":   {"each does something else once", func(i int) []string { return []string{fmt.Sprint("them-", i)} }, []int{60, 60, 60, 60, 60, 60}},
		"a second writer": {"the same one is among them", func(i int) []string { return []string{"them", fmt.Sprint(i)} }, []int{5, 1, 1, 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var f fights
			start := time.Unix(1000, 0)
			id := fighter{"uid", "key"}
			got := make([]int, len(test.want))
			for second := range 60 * len(got) {
				now := start.Add(time.Duration(second) * time.Second)
				if whom, next := f.judge(id, now, onceInAWhile); whom != "" && now.Before(next) {
					continue
				}
				c := correction{at: now}
				if f.count(id, now) >= anonymous {
					c.managers, c.fields = test.managers(second), []string{"data.value"}
				}
				f.note(id, c)
				got[second/60]++
			}
			for i := range got {
				if got[i] > test.want[i] || got[i] < test.want[i]-1 {
					t.Errorf("%s: %v corrections in each minute, want %v", test.why, got, test.want)
					break
				}
			}
			f.forget("uid")
			if whom, _ := f.judge(id, start, onceInAWhile); whom != "" {
				t.Errorf("fights of a component that is gone are remembered: %s", whom)
			}
		})
	}
}

func TestFightEnds(t *testing.T) {
	var f fights
	id, now := fighter{"uid", "key"}, time.Unix(1000, 0)
	for range 5 {
		f.note(id, correction{at: now, managers: []string{"them"}, fields: []string{"data.value"}})
	}
	if whom, _ := f.judge(id, now.Add(fightWindow-time.Second), onceInAWhile); !strings.Contains(whom, "them changes data.value") {
		t.Errorf("judged %q, want manager and field", whom)
	}
	if whom, _ := f.judge(id, now.Add(fightWindow), onceInAWhile); whom != "" {
		t.Errorf("judged %q after the window", whom)
	}
}
