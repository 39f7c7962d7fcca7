package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A step of a timeline: what happens at a time, and the pass that comes of it.
type step struct {
	at time.Duration
	// event is true if something happened to the object right before the pass.
	event bool
	// during is true if something happens while the pass runs.
	during bool
	fails  bool
}

// seen is what a pass was told, and when it is retried.
type seen struct {
	At      time.Duration
	Attempt int
	Last    bool
	Retry   time.Duration // after the pass; zero at once
	Retried bool
}

// TestLadderTimelines plays the timelines of the three rules by which events, retries and
// appointments interplay (Java Operator SDK): linear retry of 2 s, at most 3.
func TestLadderTimelines(t *testing.T) {
	const s = time.Second
	policy := Retry{Initial: 2 * s, Multiplier: 1, Attempts: 3, Jitter: -1}
	tests := map[string]struct {
		why   string
		steps []step
		want  []seen
	}{
		"T2 success cancels the pending retry": {
			why:   "rule 1: the next failure starts from attempt 0",
			steps: []step{{at: 0, fails: true}, {at: 1 * s, event: true}, {at: 5 * s, event: true, fails: true}},
			want:  []seen{{0, 0, false, 2 * s, true}, {1 * s, 1, false, 0, false}, {5 * s, 0, false, 2 * s, true}},
		},
		"T3 an event during a failing pass is run at once": {
			why:   "rule 2a: it uses up no attempt",
			steps: []step{{at: 0, fails: true, during: true}, {at: s / 3, fails: true}, {at: s/3 + 2*s, fails: true}},
			want:  []seen{{0, 0, false, 0, true}, {s / 3, 0, false, 2 * s, true}, {s/3 + 2*s, 1, false, 2 * s, true}},
		},
		"T4 events while a retry is armed are no attempts": {
			why: "rule 2b: seven calls in all, attempts never exceed three",
			steps: []step{
				{at: 0, fails: true},
				{at: s / 2, event: true, fails: true},
				{at: s, event: true, fails: true},
				{at: 3 * s / 2, event: true, fails: true},
				{at: 2 * s, fails: true},
				{at: 4 * s, fails: true},
				{at: 6 * s, fails: true},
			},
			want: []seen{
				{0, 0, false, 2 * s, true},
				{s / 2, 1, false, 3 * s / 2, true},
				{s, 1, false, s, true},
				{3 * s / 2, 1, false, s / 2, true},
				{2 * s, 1, false, 2 * s, true},
				{4 * s, 2, false, 2 * s, true},
				{6 * s, 3, true, 0, false},
			},
		},
		"T5 exhausted and event: runs, still last, not reset": {
			why: "rule 3, and rule 1 still holds after it",
			steps: []step{
				{at: 0, fails: true},
				{at: 2 * s, fails: true},
				{at: 4 * s, fails: true},
				{at: 6 * s, fails: true},
				{at: 8 * s, event: true, fails: true},
				{at: 9 * s, event: true},
				{at: 10 * s, event: true, fails: true},
			},
			want: []seen{
				{0, 0, false, 2 * s, true},
				{2 * s, 1, false, 2 * s, true},
				{4 * s, 2, false, 2 * s, true},
				{6 * s, 3, true, 0, false},
				{8 * s, 3, true, 0, false},
				{9 * s, 3, true, 0, false},
				{10 * s, 0, false, 2 * s, true},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, play(policy, tc.steps)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func play(policy Retry, steps []step) []seen {
	var l ladder
	var got []seen
	origin := time.Unix(0, 0)
	for _, st := range steps {
		now := origin.Add(st.at)
		if st.event {
			l.event()
		}
		info := l.start(now, policy)
		if st.during {
			l.event()
		}
		one := seen{At: st.at, Attempt: info.Attempt, Last: info.Last}
		if st.fails {
			one.Retry, one.Retried = l.failed(now, policy, 0, noJitter)
		} else {
			l.succeeded()
		}
		got = append(got, one)
	}
	return got
}

func TestRetryDelays(t *testing.T) {
	tests := map[string]struct {
		why    string
		policy Retry
		share  float64
		want   []time.Duration // of retries 1, 2, 3, 20
	}{
		"zero value": {
			why:  "one second, doubling, to ten minutes",
			want: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 10 * time.Minute},
		},
		"multiplier applies from the second retry on": {
			why:    "a known slip of others is to skip it once",
			policy: Retry{Initial: time.Second, Multiplier: 3, Max: time.Minute, Jitter: -1},
			want:   []time.Duration{time.Second, 3 * time.Second, 9 * time.Second, time.Minute},
		},
		"jitter adds, never takes away": {
			why:    "spread without retrying too early",
			policy: Retry{Jitter: 0.5}, share: 0.5,
			want: []time.Duration{1250 * time.Millisecond, 2500 * time.Millisecond, 5 * time.Second, 750 * time.Second},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for _, n := range []int{1, 2, 3, 20} {
				got = append(got, tc.policy.delay(n, tc.share))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestNoRetryPolicy(t *testing.T) {
	var l ladder
	policy := Retry{Attempts: -1}
	if info := l.start(time.Now(), policy); !info.Last || info.Attempt != 0 {
		t.Errorf("first pass without retries: got %+v, want attempt 0 and last", info)
	}
	if _, retried := l.failed(time.Now(), policy, 0, noJitter); retried {
		t.Error("a failure without retries is retried")
	}
}

func TestAgainGrows(t *testing.T) {
	var l ladder
	var got []time.Duration
	for range 4 {
		got = append(got, l.again(Retry{}))
	}
	l.succeeded()
	got = append(got, l.again(Retry{}))
	const ms = time.Millisecond
	want := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 100 * ms}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays of Again (-want +got):\n%s", diff)
	}
}

func noJitter(int) float64 { return 0 }
