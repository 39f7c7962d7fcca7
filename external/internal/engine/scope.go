package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/external/internal/decide"
)

const (
	// leastThrottle and mostThrottle bound how long no call is made when an API asks for fewer
	// calls. An API that gives no duration gets leastThrottle, which doubles each time up to a
	// minute.
	leastThrottle = time.Second
	mostThrottle  = 10 * time.Minute
	// leastPoll is the shortest delay that a suggestion of the API ("poll again after") can bring
	// about. The longest is the drift interval, or mostPoll without one.
	leastPoll = 100 * time.Millisecond
	mostPoll  = 10 * time.Minute
	// hintsTaken is the number of observations in a row after which the shortest delay doubles, up
	// to slowestHint.
	hintsTaken  = 16
	slowestHint = 5 * time.Second

	// downAfter is the number of objects whose observations must fail in a row, with no success
	// between them, before an API counts as down. From then on one call at a time is tried.
	downAfter = 3
	// leastProbe and mostProbe bound the time between two tries, which is a tenth of the time that
	// the API has been down.
	leastProbe = time.Second
	mostProbe  = 30 * time.Second
	// probeTime is how long a try holds up the next one.
	probeTime = 10 * time.Second

	// releasePace is the time between two objects that are woken after an API recovers; all of
	// them are woken within releaseTime.
	releasePace = 50 * time.Millisecond
	releaseTime = 30 * time.Second
	// wokenPause is how long an object that was woken because another one succeeded is not woken
	// for that reason again. It doubles up to mostPoll while the object keeps failing.
	wokenPause = 30 * time.Second
	// blamedKept is how many of the objects at which the API last asked for fewer calls are
	// remembered.
	blamedKept = 8
	// parkedPause is after how long an object that waits for the API tries by itself if nothing
	// wakes it before.
	parkedPause = 2 * time.Minute
)

// bounded keeps a suggested delay within limits; zero, which means no suggestion, stays zero.
func bounded(hint, least, most time.Duration) time.Duration {
	if hint <= 0 {
		return 0
	}
	return min(max(hint, least), most)
}

// answerKind is what the answer to a call says about the API as a whole.
type answerKind int

const (
	// answerWorks means that the API did what was requested, or said why not.
	answerWorks answerKind = iota
	// answerThrottled means that the API asks for fewer calls.
	answerThrottled
	// answerUnreachable means that an observation failed without an answer from the API.
	answerUnreachable
	// answerDenied means that the API is up and denies access.
	answerDenied
	// answerNothing means that the answer shows nothing about the API.
	answerNothing
)

// wakeup is when an object was last woken, and how often since its last success.
type wakeup struct {
	at    time.Time
	times int
}

// scope is what all objects with the same client share: whether calls may be made now. It receives
// every answer. While the API is down or throttles, one object at a time tries and all others
// wait; when the API answers again, they are woken, spread over time. The zero value is an open
// API.
//
// Invariant: while shut is not ScopeOpen, at most one call is admitted at a time, plus one for
// each probeTime that the call has not returned.
type scope struct {
	mu sync.Mutex
	// wake requeues an object; nil wakes none.
	wake func(key objectKey, after time.Duration)

	// shut is why calls are held back: from shutAt, for a reason that began at since, with no try
	// before until. words tell users why.
	shut    decide.Scope
	shutAt  time.Time
	since   time.Time
	until   time.Time
	words   string
	tries   int
	probing bool
	prober  objectKey
	probed  time.Time
	// turns are the objects that are to try, and when: the first at until, the second in case the
	// first does not try.
	turns map[objectKey]time.Time

	// streak are the objects whose observations failed since the last success.
	streak map[objectKey]bool
	// failed are the objects to wake when the API answers again; parked are those that wait for
	// it.
	failed, parked map[objectKey]bool
	// woken are the objects that failed and were woken because another one succeeded.
	woken map[objectKey]wakeup

	// worked counts successes since calls were last held back. blamed are the objects at which the
	// API last asked for fewer calls. If it then answers others but asks the same object again, it
	// means that object alone, which waits until own.
	worked int
	blamed []objectKey
	own    map[objectKey]time.Time
}

// state returns whether an object may call now, without taking its turn.
func (s *scope) state(key objectKey, now time.Time) (shut decide.Scope, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[key].After(now) {
		return decide.ScopeThrottled, ""
	}
	if s.admits(key, now) {
		return decide.ScopeOpen, ""
	}
	return s.shut, s.words
}

// admits reports whether the API is open or it is the object's turn to try.
func (s *scope) admits(key objectKey, now time.Time) bool {
	switch {
	case s.shut == decide.ScopeOpen, s.probing && s.prober == key:
		return true
	case now.Before(s.until):
		return false
	}
	return !s.probing || now.Sub(s.probed) >= probeTime
}

// enter takes the object's turn to call, and returns whether it has one.
func (s *scope) enter(key objectKey, now time.Time) (shut decide.Scope, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own[key].After(now) {
		return decide.ScopeThrottled, ""
	}
	if !s.admits(key, now) {
		return s.shut, s.words
	}
	if s.shut != decide.ScopeOpen && (!s.probing || s.prober != key) {
		s.probing, s.prober, s.probed = true, key, now
	}
	delete(s.parked, key)
	return decide.ScopeOpen, ""
}

// park makes an object wait for the API, and returns after how long it tries by itself.
func (s *scope) park(key objectKey, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := s.own[key]; until.After(now) {
		return until.Sub(now)
	}
	if s.shut == decide.ScopeOpen { // it has opened since
		return leastProbe
	}
	put(&s.parked, key)
	at, called := s.turns[key]
	if !called && len(s.turns) >= 2 || called && !at.After(now) {
		return parkedPause
	}
	return s.turn(key).Sub(now)
}

// turn returns when an object is to try.
func (s *scope) turn(key objectKey) time.Time {
	at, called := s.turns[key]
	if !called {
		at = s.until.Add(time.Duration(len(s.turns)) * leastProbe)
		if s.turns == nil {
			s.turns = map[objectKey]time.Time{}
		}
		s.turns[key] = at
	}
	return at
}

// waits reports whether the API must not be called for some time yet.
func (s *scope) waits(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut != decide.ScopeOpen && now.Before(s.until)
}

// forget drops a deleted object.
func (s *scope) forget(key objectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range []map[objectKey]bool{s.streak, s.failed, s.parked} {
		delete(m, key)
	}
	delete(s.woken, key)
	delete(s.turns, key)
	delete(s.own, key)
}

// answered takes the outcome of a call that started at began. after is how long the API asked to
// wait; words say in what way it is unreachable.
func (s *scope) answered(key objectKey, kind answerKind, began, now time.Time, after time.Duration, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut != decide.ScopeOpen && !began.After(s.shutAt) { // the answer is older than the closing
		if kind == answerUnreachable || kind == answerDenied {
			put(&s.failed, key)
		}
		return
	}
	if s.prober == key {
		s.probing = false
	}
	switch kind {
	case answerWorks:
		s.works(key, now)
	case answerDenied:
		s.works(key, now)
		put(&s.failed, key)
	case answerThrottled:
		if s.blames(key, now, after) {
			return
		}
		s.close(decide.ScopeThrottled, began, now, s.throttle(after), "")
	case answerUnreachable:
		put(&s.failed, key)
		put(&s.streak, key)
		if s.shut == decide.ScopeOpen && len(s.streak) < downAfter {
			return
		}
		s.close(decide.ScopeDown, began, now, 0, words)
	case answerNothing:
		if s.shut != decide.ScopeOpen { // another object is to try
			s.close(s.shut, began, now, leastProbe, s.words)
		}
	}
}

// blames reports whether an API that asks for fewer calls means this object alone: it asked the
// same one recently, and answers others. Then only that object waits.
func (s *scope) blames(key objectKey, now time.Time, after time.Duration) bool {
	if s.shut == decide.ScopeOpen && s.worked > 0 && slices.Contains(s.blamed, key) {
		if s.own == nil {
			s.own = map[objectKey]time.Time{}
		}
		s.own[key] = now.Add(cmp.Or(bounded(after, leastThrottle, mostThrottle), wokenPause))
		return true
	}
	s.blamed = append(s.blamed, key)
	s.blamed = s.blamed[max(0, len(s.blamed)-blamedKept):]
	return false
}

// throttle returns for how long no call is made.
func (s *scope) throttle(hint time.Duration) time.Duration {
	if hint > 0 {
		return bounded(hint, leastThrottle, mostThrottle)
	}
	if s.shut != decide.ScopeThrottled {
		return leastThrottle
	}
	return min(leastThrottle<<min(s.tries, 6), time.Minute)
}

// close holds calls back, or continues to. A wait of zero means a tenth of the time that has been
// so.
func (s *scope) close(why decide.Scope, began, now time.Time, wait time.Duration, words string) {
	if s.shut == decide.ScopeOpen {
		s.shutAt = now
	}
	s.worked = 0
	if s.shut != why {
		s.since, s.tries = began, 0
	}
	if wait == 0 {
		wait = min(max(now.Sub(s.since)/10, leastProbe), mostProbe)
	}
	s.shut, s.until, s.words = why, now.Add(wait), words
	clear(s.turns)
	s.tries++
	s.call(now)
}

// call wakes two objects to try: waiting ones before failed ones, and none twice in a row if there
// is another.
func (s *scope) call(now time.Time) {
	for _, key := range s.next() {
		s.ring(key, s.turn(key).Sub(now))
	}
}

// next returns the two objects whose turn it is to try, in the order of their names after the one
// that tried last.
func (s *scope) next() []objectKey {
	from := s.parked
	if len(from) < 2 {
		from = maps.Clone(s.failed)
		maps.Copy(from, s.parked)
	}
	keys := s.inTurn(from)
	return keys[:min(2, len(keys))]
}

// inTurn returns keys in the order of their names, starting after the last one that had its turn:
// if an API takes few calls, every waiting object gets its turn.
func (s *scope) inTurn(of map[objectKey]bool) []objectKey {
	keys := sorted(of)
	after, found := slices.BinarySearchFunc(keys, s.prober, compareKeys)
	if found {
		after++
	}
	return slices.Concat(keys[after:], keys[:after])
}

// works notes that the API answered. If it was held to be shut, the objects that wait for it are
// woken.
func (s *scope) works(key objectKey, now time.Time) {
	s.worked++
	delete(s.own, key)
	delete(s.woken, key)
	recovered := s.failed[key]
	delete(s.failed, key)
	delete(s.parked, key)
	clear(s.streak)
	back := map[objectKey]bool{}
	switch {
	case s.shut != decide.ScopeOpen:
		maps.Copy(back, s.parked)
		s.others(back, now)
		clear(s.parked)
		s.shut, s.probing, s.words, s.tries = decide.ScopeOpen, false, "", 0
	case recovered:
		s.others(back, now)
	}
	s.prober = key
	keys := s.inTurn(back)
	pace := min(releasePace, releaseTime/time.Duration(max(len(keys), 1)))
	for i, k := range keys {
		delete(s.failed, k)
		s.ring(k, time.Duration(i)*pace)
	}
}

// others adds the objects that failed and were not woken recently for the same reason. An object
// that keeps failing while the API answers others has a problem of its own.
func (s *scope) others(back map[objectKey]bool, now time.Time) {
	maps.DeleteFunc(s.woken, func(_ objectKey, w wakeup) bool { return now.Sub(w.at) >= 2*mostPoll })
	if s.woken == nil {
		s.woken = map[objectKey]wakeup{}
	}
	for k := range s.failed {
		w := s.woken[k]
		if w.times == 0 || now.Sub(w.at) >= min(wokenPause<<min(w.times-1, 10), mostPoll) {
			back[k], s.woken[k] = true, wakeup{now, w.times + 1}
		}
	}
}

func (s *scope) ring(key objectKey, after time.Duration) {
	if s.wake != nil {
		s.wake(key, after)
	}
}

func put(m *map[objectKey]bool, key objectKey) { orEmpty(m)[key] = true }

func orEmpty(m *map[objectKey]bool) map[objectKey]bool {
	if *m == nil {
		*m = map[objectKey]bool{}
	}
	return *m
}

func sorted(m map[objectKey]bool) []objectKey { return slices.SortedFunc(maps.Keys(m), compareKeys) }

func compareKeys(a, b objectKey) int { return strings.Compare(a.String(), b.String()) }
