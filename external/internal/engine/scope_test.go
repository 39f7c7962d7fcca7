package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/internal/spread"
)

// backend is an API and the objects that call it, simulated on its own clock, with the delays that
// the engine and its loop would give.
type backend struct {
	scope scope
	now   time.Time
	due   map[objectKey]time.Time
	tries map[objectKey]int
	well  map[objectKey]time.Time // since when an object is
	calls []time.Time
	// asking is the object that calls; again is when a healthy object is reconciled again, 0
	// never.
	asking objectKey
	again  time.Duration
	// workers bounds the number of concurrent calls.
	workers int
	flying  []flying
	// takes is how much longer than a millisecond a call for an object takes; nil means no longer.
	takes func(key objectKey) time.Duration
	// turned counts how often an object was turned away.
	turned map[objectKey]int
	// answer is the API's current answer.
	answer func(now time.Time) (kind answerKind, after time.Duration)
}

func newBackend(n int) *backend {
	b := &backend{
		now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC),
		due: map[objectKey]time.Time{}, tries: map[objectKey]int{}, well: map[objectKey]time.Time{},
		turned: map[objectKey]int{}, workers: 1,
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

// run simulates until the time has passed.
func (b *backend) run(d time.Duration) {
	end := b.now.Add(d)
	for {
		next, due := b.next()
		back := b.firstBack()
		switch {
		case due && len(b.flying) < b.workers && (back < 0 || !b.due[next].After(b.flying[back].ends)) && !b.due[next].After(end):
			b.pass(b.due[next])
			delete(b.due, next)
			b.begin(next)
		case back >= 0 && !b.flying[back].ends.After(end):
			b.pass(b.flying[back].ends)
			f := b.flying[back]
			b.flying = slices.Delete(b.flying, back, back+1)
			b.finish(f)
		default:
			b.now = end
			return
		}
	}
}

// pass advances the clock.
func (b *backend) pass(until time.Time) {
	if until.After(b.now) {
		b.now = until
	}
}

// next returns the object whose turn is next.
func (b *backend) next() (next objectKey, is bool) {
	for key, at := range b.due {
		if !is || at.Before(b.due[next]) || at.Equal(b.due[next]) && compareKeys(key, next) < 0 {
			next, is = key, true
		}
	}
	return next, is
}

// firstBack returns the call that ends next, -1 if there is none.
func (b *backend) firstBack() int {
	first := -1
	for i, f := range b.flying {
		if first < 0 || f.ends.Before(b.flying[first].ends) {
			first = i
		}
	}
	return first
}

// begin starts an object's call, if it may make one.
func (b *backend) begin(key objectKey) {
	if shut, _ := b.scope.enter(key, b.now); shut != decide.ScopeOpen {
		b.turned[key]++
		b.due[key] = b.now.Add(b.scope.park(key, b.now))
		return
	}
	took := time.Millisecond
	if b.takes != nil {
		took += b.takes(key)
	}
	b.calls = append(b.calls, b.now)
	b.flying = append(b.flying, flying{key: key, began: b.now, ends: b.now.Add(took)})
}

// finish takes the outcome of a call.
func (b *backend) finish(f flying) {
	key := f.key
	b.asking = key
	kind, after := b.answer(f.began)
	b.scope.answered(key, kind, f.began, b.now, after, "away")
	again := func(at time.Time) {
		if woken, is := b.due[key]; !is || at.Before(woken) {
			b.due[key] = at
		}
	}
	switch kind {
	case answerWorks:
		if b.well[key], b.tries[key] = b.now, 0; b.again > 0 {
			again(b.now.Add(b.again))
		}
	case answerThrottled:
		b.due[key] = b.now.Add(b.scope.park(key, b.now))
	case answerUnreachable, answerDenied, answerNothing:
		wait := min(time.Second<<b.tries[key], 10*time.Minute)
		again(b.now.Add(wait + time.Duration(float64(wait)*spread.Share(key, b.tries[key])/10)))
		b.tries[key]++
	}
}

// flying is a call in progress.
type flying struct {
	key         objectKey
	began, ends time.Time
}

// TestScopeOutage checks that there are few calls while the API is down, and that all objects are
// back soon after it.
func TestScopeOutage(t *testing.T) {
	for _, lasts := range []time.Duration{3 * time.Second, 75 * time.Second, 10 * time.Minute} {
		for _, n := range []int{3, 50, 300} {
			t.Run(fmt.Sprintf("%s, %d objects", lasts, n), func(t *testing.T) {
				b := newBackend(n)
				back := b.now.Add(lasts)
				b.answer = func(now time.Time) (answerKind, time.Duration) {
					if now.Before(back) {
						return answerUnreachable, 0
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

// TestScopeThrottled checks that nobody calls before the time that the API asked for, and that one
// object tries then.
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

// TestScopeThrottledWithoutAHint checks that the pause grows.
func TestScopeThrottledWithoutAHint(t *testing.T) {
	b := newBackend(10)
	b.answer = func(time.Time) (answerKind, time.Duration) { return answerThrottled, 0 }
	b.run(time.Hour)
	if n := len(b.calls); n < 55 || n > 75 {
		t.Errorf("%d calls in an hour", n)
	}
}

// TestScopeOfThrottledObjects checks that an API that asks for fewer calls for some objects alone
// does not keep the others from being observed.
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
				t.Errorf("%d observations of the others in an hour, want %d at least", looks, want)
			}
			if most := 70 * len(stopped); len(b.calls)-looks > most {
				t.Errorf("%d calls were asked to wait, want at most %d", len(b.calls)-looks, most)
			}
		})
	}
}

// TestScopeOfALimit checks that an API that accepts ten calls in half a minute, from whomever,
// does not receive many more.
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
		t.Errorf("%d of 40 objects were ever observed", len(b.well))
	}
	t.Logf("%d calls, %d too many", len(b.calls), refused)
}

// TestHintThatNeverEnds checks that an API that always suggests polling again at once is polled at
// once only for a short time.
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

// TestScopeOfSlowObjects checks that objects whose observations take all of their time are
// observed ever more rarely, while the others continue.
func TestScopeOfSlowObjects(t *testing.T) {
	b := newBackend(40)
	b.again, b.workers = 10*time.Minute, 4
	slow := []string{"o001", "o003", "o004", "o008", "o017", "o022", "o031", "o033"}
	is := func(key objectKey) bool { return slices.Contains(slow, key.Name) }
	b.takes = func(key objectKey) time.Duration {
		if is(key) {
			return 30 * time.Second
		}
		return 0
	}
	waits := 0
	b.answer = func(time.Time) (answerKind, time.Duration) {
		if is(b.asking) {
			waits++
			return answerUnreachable, 0
		}
		return answerWorks, 0
	}
	b.run(2 * time.Hour)
	if most := 32 * len(slow); waits > most { // 22 by their own back-off, some because others are well
		t.Errorf("%d calls that take half a minute in two hours, want at most %d", waits, most)
	}
	turned := 0
	for key, n := range b.turned {
		if !is(key) {
			turned += n
		}
	}
	if most := 300; turned > most {
		t.Errorf("the others were held back %d times in two hours, want at most %d", turned, most)
	}
	t.Logf("%d slow calls, %d times held back, %d calls", waits, turned, len(b.calls))
}

// TestScopeDenied checks that an API that denies everyone is not called again by all objects just
// because it answers.
func TestScopeDenied(t *testing.T) {
	b := newBackend(300)
	b.answer = func(time.Time) (answerKind, time.Duration) { return answerDenied, 0 }
	b.run(time.Hour)
	if most := 300 * 18; len(b.calls) > most {
		t.Errorf("%d calls in an hour, want at most %d", len(b.calls), most)
	}
}

// TestScopeOfOneBrokenObject checks that one or two failing objects are not blamed on the API, and
// that the success of others does not retry them more often than every half minute.
func TestScopeOfOneBrokenObject(t *testing.T) {
	var s scope
	woken := 0
	s.wake = func(objectKey, time.Duration) { woken++ }
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	broken, flaky := objectKey{Name: "broken"}, objectKey{Name: "flaky"}
	for i := range 3600 {
		now = now.Add(time.Second)
		s.answered(broken, answerUnreachable, now, now, 0, "")
		kind := answerWorks
		if i%2 == 0 {
			kind = answerUnreachable
		}
		s.answered(flaky, kind, now, now, 0, "")
		if shut, _ := s.state(flaky, now); shut != decide.ScopeOpen {
			t.Fatalf("shut: %d", shut)
		}
	}
	if woken > 121 {
		t.Errorf("woken %d times in an hour", woken)
	}
}

// TestScopeForgets checks that deleted objects are forgotten.
func TestScopeForgets(t *testing.T) {
	var s scope
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		key := objectKey{Name: fmt.Sprint(i)}
		s.answered(key, answerUnreachable, now, now, 0, "")
		s.park(key, now)
	}
	for i := range 10 {
		s.forget(objectKey{Name: fmt.Sprint(i)})
	}
	if n := len(s.failed) + len(s.parked) + len(s.streak) + len(s.woken); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
