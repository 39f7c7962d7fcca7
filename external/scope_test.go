package external

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// backend is an API and the objects that call it, played by a clock of its own: who comes
// when, with the delays that the engine and its loop would give.
type backend struct {
	scope scope
	now   time.Time
	due   map[objectKey]time.Time
	tries map[objectKey]int
	well  map[objectKey]time.Time // since when an object is
	calls []time.Time
	// asking is the object that calls; again is when one comes again that is well, 0 never.
	asking objectKey
	again  time.Duration
	// answer is what the API says now.
	answer func(now time.Time) (kind answerKind, after time.Duration)
}

func newBackend(n int) *backend {
	b := &backend{
		now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC),
		due: map[objectKey]time.Time{}, tries: map[objectKey]int{}, well: map[objectKey]time.Time{},
	}
	b.scope.wake = func(key objectKey, after time.Duration) {
		if at := b.now.Add(after); b.due[key].IsZero() || at.Before(b.due[key]) {
			b.due[key] = at
		}
	}
	for i := range n {
		b.due[objectKey{Name: fmt.Sprintf("o%03d", i)}] = b.now
	}
	return b
}

// run plays until the time has passed. Calls take a millisecond.
func (b *backend) run(d time.Duration) {
	for end := b.now.Add(d); ; {
		var next objectKey
		for key, at := range b.due {
			if next == (objectKey{}) || at.Before(b.due[next]) || at.Equal(b.due[next]) && compareKeys(key, next) < 0 {
				next = key
			}
		}
		if next == (objectKey{}) || b.due[next].After(end) {
			b.now = end
			return
		}
		if b.due[next].After(b.now) {
			b.now = b.due[next]
		}
		delete(b.due, next)
		b.visit(next)
	}
}

func (b *backend) visit(key objectKey) {
	if shut, _ := b.scope.enter(key, b.now); shut != ScopeOpen {
		b.due[key] = b.now.Add(b.scope.park(key, b.now))
		return
	}
	began := b.now
	b.asking = key
	b.calls = append(b.calls, began)
	b.now = b.now.Add(time.Millisecond)
	kind, after := b.answer(began)
	b.scope.answered(key, kind, began, b.now, after, "away")
	switch kind {
	case answerWorks:
		b.well[key], b.tries[key] = b.now, 0
		if at := b.now.Add(b.again); b.again > 0 && (b.due[key].IsZero() || at.Before(b.due[key])) {
			b.due[key] = at
		}
	case answerThrottled:
		b.due[key] = b.now.Add(b.scope.park(key, b.now))
	case answerAway, answerDenied, answerNothing:
		at := b.now.Add(min(time.Second<<b.tries[key], 10*time.Minute))
		b.tries[key]++
		if woken, is := b.due[key]; !is || at.Before(woken) {
			b.due[key] = at
		}
	}
}

// TestScopeOutage: few calls while the API is away, and all objects back soon after it.
func TestScopeOutage(t *testing.T) {
	for _, lasts := range []time.Duration{3 * time.Second, 75 * time.Second, 10 * time.Minute} {
		for _, n := range []int{3, 50, 300} {
			t.Run(fmt.Sprintf("%s, %d objects", lasts, n), func(t *testing.T) {
				b := newBackend(n)
				back := b.now.Add(lasts)
				b.answer = func(now time.Time) (answerKind, time.Duration) {
					if now.Before(back) {
						return answerAway, 0
					}
					return answerWorks, 0
				}
				b.run(lasts)
				if most := 40 + int(lasts/(25*time.Second)); len(b.calls) > most {
					t.Errorf("%d calls meanwhile, want at most %d", len(b.calls), most)
				}
				within := min(lasts/10+2*time.Second, 32*time.Second) + min(time.Duration(n)*releasePace, releaseTime+2*time.Second)
				b.run(within)
				if len(b.well) != n {
					t.Errorf("%d of %d objects are back %s after the API", len(b.well), n, within)
				}
			})
		}
	}
}

// TestScopeThrottled: nobody calls before the time the API named, one object tries then.
func TestScopeThrottled(t *testing.T) {
	b := newBackend(40)
	start := b.now
	b.answer = func(now time.Time) (answerKind, time.Duration) {
		if now.Sub(start) < 95*time.Second {
			return answerThrottled, 30 * time.Second
		}
		return answerWorks, 0
	}
	b.run(95 * time.Second)
	if len(b.calls) != 4 {
		t.Errorf("calls %v; want one each 30 s", b.calls)
	}
	b.run(30*time.Second + 40*releasePace + time.Second)
	if len(b.well) != 40 {
		t.Errorf("%d of 40 are back", len(b.well))
	}
}

// TestScopeThrottledWithoutAHint: the pause grows.
func TestScopeThrottledWithoutAHint(t *testing.T) {
	b := newBackend(10)
	b.answer = func(time.Time) (answerKind, time.Duration) { return answerThrottled, 0 }
	b.run(time.Hour)
	if n := len(b.calls); n < 55 || n > 75 {
		t.Errorf("%d calls in an hour", n)
	}
}

// TestScopeOfThrottledObjects: an API that asks for fewer calls of some objects alone does not
// keep the others from being looked at.
func TestScopeOfThrottledObjects(t *testing.T) {
	for name, stopped := range map[string][]string{"one": {"o007"}, "three": {"o000", "o020", "o039"}} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(40)
			b.again = 10 * time.Second
			looks := 0
			b.answer = func(time.Time) (answerKind, time.Duration) {
				if slices.Contains(stopped, b.asking.Name) {
					return answerThrottled, time.Minute
				}
				looks++
				return answerWorks, 0
			}
			b.run(time.Hour)
			if want := 360 * (40 - len(stopped)) * 8 / 10; looks < want {
				t.Errorf("%d looks at the others in an hour, want %d at least", looks, want)
			}
			if most := 70 * len(stopped); len(b.calls)-looks > most {
				t.Errorf("%d calls were asked to wait, want at most %d", len(b.calls)-looks, most)
			}
		})
	}
}

// TestScopeOfALimit: an API that takes ten calls in half a minute, whoever makes them, is not
// asked for many more.
func TestScopeOfALimit(t *testing.T) {
	b := newBackend(40)
	b.again = 10 * time.Second
	var window time.Time
	taken, refused := 0, 0
	b.answer = func(now time.Time) (answerKind, time.Duration) {
		if now.Sub(window) >= 30*time.Second {
			window, taken = now, 0
		}
		if taken++; taken > 10 {
			refused++
			return answerThrottled, window.Add(30 * time.Second).Sub(now)
		}
		return answerWorks, 0
	}
	b.run(time.Hour)
	if most := 120 * (1 + blamedKept); refused > most {
		t.Errorf("%d calls too many in an hour, want at most %d", refused, most)
	}
	if len(b.well) != 40 {
		t.Errorf("%d of 40 objects were ever looked at", len(b.well))
	}
	t.Logf("%d calls, %d too many", len(b.calls), refused)
}

// TestHintThatNeverEnds: an API that asks to be looked at again at once is, for a moment.
func TestHintThatNeverEnds(t *testing.T) {
	looks, passed, soon := 0, time.Duration(0), 0
	for passed < time.Hour {
		looks++
		passed += bounded(time.Millisecond, soonest(looks), mostPoll)
		if passed < 2*time.Second {
			soon++
		}
	}
	if looks > 900 || soon < 15 {
		t.Errorf("%d looks in an hour, %d in the first two seconds", looks, soon)
	}
}

// TestScopeOfOneBrokenObject: what is wrong with one or two objects is not the API's fault,
// and others' success does not make them come more often than every half minute.
func TestScopeOfOneBrokenObject(t *testing.T) {
	var s scope
	woken := 0
	s.wake = func(objectKey, time.Duration) { woken++ }
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	broken, flaky := objectKey{Name: "broken"}, objectKey{Name: "flaky"}
	for i := range 3600 {
		now = now.Add(time.Second)
		s.answered(broken, answerAway, now, now, 0, "")
		kind := answerWorks
		if i%2 == 0 {
			kind = answerAway
		}
		s.answered(flaky, kind, now, now, 0, "")
		if shut, _ := s.state(flaky, now); shut != ScopeOpen {
			t.Fatalf("shut: %d", shut)
		}
	}
	if woken > 121 {
		t.Errorf("woken %d times in an hour", woken)
	}
}

// TestScopeForgets: what is gone is not kept.
func TestScopeForgets(t *testing.T) {
	var s scope
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		key := objectKey{Name: fmt.Sprint(i)}
		s.answered(key, answerAway, now, now, 0, "")
		s.park(key, now)
	}
	for i := range 10 {
		s.forget(objectKey{Name: fmt.Sprint(i)})
	}
	if n := len(s.failed) + len(s.parked) + len(s.streak) + len(s.woken); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
