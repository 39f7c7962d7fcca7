package plan

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
)

// Order puts the most telling schedules first: crashes, then answers that are lost, then all others. Among
// those of each kind any number of the first ones is spread over the whole run.
func Order(jobs []run.Job) []run.Job {
	type place struct {
		tier, group int
		at          float64
		job         run.Job
	}
	var kinds []string
	byKind := map[string][]run.Job{}
	for _, j := range jobs {
		kind := string(j.Family) + string(j.Schedule.Family()) + j.Schedule[0].Kind
		if byKind[kind] == nil {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], j)
	}
	places := make([]place, 0, len(jobs))
	for group, kind := range kinds {
		of := byKind[kind]
		for rank, i := range spread(len(of)) {
			places = append(places, place{tierOf(of[i]), group, (float64(rank) + 0.5) / float64(len(of)), of[i]})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group))
	})
	ordered := make([]run.Job, len(places))
	for i, p := range places {
		ordered[i] = p.job
	}
	return ordered
}

// Shuffle puts schedules in a random order, the same one each time with the same seed.
func Shuffle(jobs []run.Job, seed uint64) {
	rand.New(rand.NewPCG(seed, uint64(len(jobs)))).Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
}

// tierOf says how telling a schedule is, 0 is the most.
func tierOf(j run.Job) int {
	s := j.Schedule
	switch {
	case j.Family == schedule.Recoveries:
		return 3
	case s.Family() == schedule.Crashes:
		return 0
	case s.Family() == schedule.Pairs: // most of what two disturbances break one of them breaks
		return 4
	case s.Family() == schedule.Faults && s.Has(schedule.LostAnswer, schedule.FailedAfter):
		return 1
	}
	return 2
}

// spread returns the numbers below n in an order in which the first ones, however many, are far from each
// other.
func spread(n int) []int {
	if n == 0 {
		return nil
	}
	width := bits.Len(uint(n - 1))
	all := make([]int, 0, n)
	for i := range 1 << width {
		if at := int(bits.Reverse(uint(i)) >> (bits.UintSize - width)); at < n {
			all = append(all, at)
		}
	}
	return all
}
