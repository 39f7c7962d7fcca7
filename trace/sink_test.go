package trace_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

type sinkFunc func(trace.Record)

func (f sinkFunc) Record(r trace.Record) { f(r) }

func TestPassWithoutSink(t *testing.T) {
	for name, p := range map[string]*trace.Pass{
		"nil": nil, "zero": {}, "from an empty context": trace.From(t.Context()), "nil sink": trace.NewPass(nil, "c", trace.Object{}, 1),
	} {
		p.Emit(trace.End{})
		if err := p.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPanickingSinkHarmsNobody(t *testing.T) {
	var before, after tracetest.Recorder
	broken := sinkFunc(func(trace.Record) { panic("no space left") })
	p := trace.NewPass(trace.Multi(&before, nil, broken, &after), "c", trace.Object{}, 1)
	p.Emit(trace.Start{})
	p.Emit(trace.End{})
	if b, a := len(before.Records()), len(after.Records()); b != 2 || a != 2 {
		t.Errorf("the sinks before and after the broken one got %d and %d records, want 2 and 2", b, a)
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("the pass does not tell what the sink died of: %v", err)
	}
}

func TestMulti(t *testing.T) {
	if trace.Multi(nil, nil) != nil {
		t.Error("a Multi of nothing is not nil, so that passes do needless work")
	}
}

func TestBufferKeepsABlockedSinkAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got tracetest.Recorder
		gate := make(chan struct{})
		b := trace.NewBuffer(sinkFunc(func(r trace.Record) { <-gate; got.Record(r) }), 3)
		b.Record(record(trace.Start{Generation: 1}))
		synctest.Wait() // the first is held by the sink
		for i := range 5 {
			b.Record(record(trace.Start{Generation: int64(2 + i)}))
		}
		if b.Dropped() != 2 {
			t.Errorf("dropped %d, want 2: one held by the sink, three in the buffer, two too many", b.Dropped())
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Close(short); err == nil {
			t.Error("Close returns although the sink is blocked")
		}
		close(gate)
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		var generations []int64
		for _, e := range tracetest.Events[trace.Start](got.Records()) {
			generations = append(generations, e.Generation)
		}
		if diff := cmp.Diff([]int64{1, 2, 3, 4}, generations); diff != "" {
			t.Errorf("what was taken must come out, in order (-want +got):\n%s", diff)
		}
	})
}

func TestBufferOutlivesAPanickingSink(t *testing.T) {
	calls := 0
	b := trace.NewBuffer(sinkFunc(func(trace.Record) { calls++; panic("x") }), 0)
	b.Record(record(trace.Start{}))
	b.Record(record(trace.Start{}))
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if calls != 2 || b.Dropped() != 2 {
		t.Errorf("calls %d, dropped %d; want 2 and 2", calls, b.Dropped())
	}
}

func TestRingSelect(t *testing.T) {
	ring := trace.NewRing(trace.RingOptions{})
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 6 {
		ring.Record(trace.Record{
			Time: start.Add(time.Duration(i) * time.Minute), Controller: fmt.Sprint("c", i%2),
			Object: trace.Object{Kind: fmt.Sprint("K", i%2), Namespace: "ns", Name: fmt.Sprint("n", i%3), UID: fmt.Sprint("u", i)},
			Event:  trace.Start{Generation: int64(i)},
		})
	}
	tests := map[string]struct {
		why   string
		query trace.Query
		want  []int64
	}{
		"all":        {why: "zero selects all", want: []int64{0, 1, 2, 3, 4, 5}},
		"controller": {why: "one of two", query: trace.Query{Controller: "c1"}, want: []int64{1, 3, 5}},
		"object":     {why: "kind and name together", query: trace.Query{Kind: "K1", Namespace: "ns", Name: "n0"}, want: []int64{3}},
		"uid":        {why: "tells namesakes apart", query: trace.Query{UID: "u4"}, want: []int64{4}},
		"since":      {why: "the moment itself counts", query: trace.Query{Since: start.Add(4 * time.Minute)}, want: []int64{4, 5}},
		"last":       {why: "the newest", query: trace.Query{Last: 2}, want: []int64{4, 5}},
		"nowhere":    {why: "another namespace", query: trace.Query{Namespace: "other"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, generations(ring.Select(tt.query))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func generations(records []trace.Record) []int64 {
	var got []int64
	for _, e := range tracetest.Events[trace.Start](records) {
		got = append(got, e.Generation)
	}
	return got
}

// The ring against the simplest thing that could work, on random records.
func TestRingAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		maxRecords := 1 + rng.IntN(20)
		ring := trace.NewRing(trace.RingOptions{Records: maxRecords})
		var model []int64
		for i := range rng.IntN(200) {
			ring.Record(record(trace.Start{Generation: int64(i)}))
			model = append(model, int64(i))
			model = model[max(0, len(model)-maxRecords):]
			if diff := cmp.Diff(model, generations(ring.Select(trace.Query{}))); diff != "" {
				t.Fatalf("bound %d, after %d records (-model +ring):\n%s", maxRecords, i+1, diff)
			}
		}
	}
}

func TestRingBoundsMemory(t *testing.T) {
	const bound = 100_000
	ring := trace.NewRing(trace.RingOptions{Bytes: bound})
	for i := range 1000 {
		ring.Record(record(trace.End{Err: strings.Repeat("x", i*3)}))
		held := 0
		for _, e := range tracetest.Events[trace.End](ring.Select(trace.Query{})) {
			held += len(e.Err)
		}
		if held > bound {
			t.Fatalf("holds %d bytes of text alone, over the bound of %d", held, bound)
		}
	}
	kept := len(ring.Select(trace.Query{}))
	if kept == 0 || ring.Dropped() != uint64(1000-kept) {
		t.Errorf("kept %d, dropped %d, of 1000", kept, ring.Dropped())
	}
	ring.Record(record(trace.End{Err: strings.Repeat("x", bound)}))
	if now := len(ring.Select(trace.Query{})); now != kept {
		t.Errorf("a record larger than the ring pushed out %d others", kept-now)
	}
}

func TestSinksAreSafeForConcurrentUse(t *testing.T) {
	ring := trace.NewRing(trace.RingOptions{Records: 100})
	var out lines
	buffer := trace.NewBuffer(trace.Text(&out), 0)
	sink := trace.Multi(ring, trace.JSON(&out), buffer)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 200 {
				trace.NewPass(sink, "c", trace.Object{Name: "o"}, uint64(worker*1000+i)).Emit(trace.Start{})
				ring.Select(trace.Query{Last: 3})
			}
		})
	}
	wg.Wait()
	if err := buffer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if kept := len(ring.Select(trace.Query{})); kept != 100 || ring.Dropped() != 1500 {
		t.Errorf("the ring kept %d and dropped %d, want 100 and 1500", kept, ring.Dropped())
	}
	if want := 3200 - int(buffer.Dropped()); out.n != want || out.torn != 0 {
		t.Errorf("%d writes, %d of them not one whole line; want %d and 0", out.n, out.torn, want)
	}
}

// lines counts writes and those that are not exactly one line.
type lines struct {
	mu      sync.Mutex
	n, torn int
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	if s := string(b); strings.Count(s, "\n") != 1 || !strings.HasSuffix(s, "\n") {
		l.torn++
	}
	return len(b), nil
}
