package state

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
)

// Aging lists what differs between a state at rest and a later one, after only time has gone by.
func Aging(rest, later history.State, after time.Duration) (all []history.Aged) {
	x, y := sheets(rest, later), sheets(later, rest)
	keys := maps.Clone(x)
	maps.Copy(keys, y)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if sheet, is := y[key]; sheet != x[key] {
			all = append(all, history.Aged{Key: key, Sheet: sheet, Gone: !is, After: after})
		}
	}
	return all
}

// AgedBy lists what may have become of things in a run by the end of a step, because it has taken longer than the
// run that it is compared with: what became of them there after one of the steps so far, in no more time. at is when
// the thing with a key changed.
func AgedBy(r, like *history.Run, step int, at func(key string) time.Time) (all []history.Aged) {
	for i := range min(step+1, len(like.Steps), len(r.Steps)) {
		for _, a := range like.Steps[i].Aged {
			if at(a.Key).Sub(r.Steps[i].At) >= a.After {
				all = append(all, a)
			}
		}
	}
	return all
}

// Young leaves out of two states what differs between them because it has aged in the second one.
func Young(want, got history.State, aged []history.Aged) (_, _ history.State) {
	if len(aged) == 0 || Matches(want, got) {
		return want, got
	}
	x, y := sheets(want, got), sheets(got, want)
	left := map[string]bool{}
	for _, a := range aged {
		sheet, is := y[a.Key]
		if x[a.Key] != sheet && is != a.Gone && (sheet == a.Sheet || a.Woken && x[a.Key] != "" && isBetween(x[a.Key], a.Sheet, sheet)) {
			left[a.Key] = true
		}
	}
	if len(left) == 0 {
		return want, got
	}
	return withoutKeys(want, left), withoutKeys(got, left)
}

// isBetween reports whether a sheet differs from one only where, and as, another one does.
func isBetween(from, to, sheet string) bool {
	var a, b, c any
	if yaml.Unmarshal([]byte(from), &a) != nil || yaml.Unmarshal([]byte(to), &b) != nil || yaml.Unmarshal([]byte(sheet), &c) != nil {
		return false
	}
	may := map[string]any{}
	leaves("", a, b, byName, func(path string, _, y any) { may[path] = y })
	between := true
	leaves("", a, c, byName, func(path string, _, y any) {
		value, is := may[path]
		between = between && is && reflect.DeepEqual(value, y)
	})
	return between
}

// withoutKeys leaves objects and external resources out of a state.
func withoutKeys(s history.State, left map[string]bool) history.State {
	s.Objects = maps.Clone(s.Objects)
	maps.DeleteFunc(s.Objects, func(key, _ string) bool { return left[key] })
	s.Resources = slices.DeleteFunc(slices.Clone(s.Resources), func(t history.Resource) bool { return left[externalKey(t)] })
	s.Bonds = slices.DeleteFunc(slices.Clone(s.Bonds), func(b history.Bond) bool { return left[b.Of.Object] || left[b.With.Object] })
	return s
}
