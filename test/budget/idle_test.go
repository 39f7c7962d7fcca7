package budget

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/test/internal/audit"
	"github.com/trimtab-dev/trimtab/testenv"
)

// crowd is how many objects are idle together.
const crowd = 100

// hundred makes a hundred Streams that are Ready.
func (b *bench) hundred(t *testing.T, flags ...string) (*natsTest, []*v1alpha1.Stream) {
	t.Helper()
	nt := b.newNATSTest(t, flags...)
	began := time.Now()
	var streams []*v1alpha1.Stream
	for i := range crowd {
		streams = append(streams, nt.stream(fmt.Sprintf("s%03d", i)))
		nt.create(streams[i])
	}
	for _, s := range streams {
		ready(nt, s)
	}
	t.Logf("%d Streams became Ready in %s", crowd, time.Since(began).Round(time.Millisecond))
	return nt, streams
}

// idle: a hundred Ready Streams cost no request to Kubernetes but watches and the lease, and
// one read of NATS per object and drift interval. The interval is a second, so twenty seconds
// show twenty intervals; they cannot show what only time brings, such as watches that end
// after some minutes. TRIMTAB_DEEP=1 takes the default interval, and eleven minutes.
func (b *bench) idle(t *testing.T) {
	interval, listened := time.Second, 20*time.Second
	flags := []string{"--drift-interval", interval.String()}
	if os.Getenv("TRIMTAB_DEEP") == "1" {
		interval, listened, flags = 10*time.Minute, 11*time.Minute, nil
	}
	nt, streams := b.hundred(t, flags...)
	nt.listen(settling)
	from := nt.mark()
	nt.listen(listened)
	c := nt.cost(from, nt.mark())
	nt.deleteAll(streams)
	nt.operator.Stop()

	if asked := c.kubernetes.Of(audit.Write, audit.Read, audit.Event, audit.Review); len(asked) > 0 {
		t.Errorf("asked of Kubernetes while idle: %s", asked)
	}
	sum := c.sum()
	t.Logf("%d Streams for %s at an interval of %s: Kubernetes %s; NATS changes %d, looks %d", crowd, listened, interval, c.kubernetes.Counts(), sum.Changes, sum.Looks)
	if sum.Changes > 0 {
		t.Errorf("NATS was changed while idle:\n%s", c)
	}
	steady(t, c.calls, interval)
}

// steady asserts that each stream is looked at, and no two looks are closer than an interval,
// less the tenth by which intervals are spread. That none is missed is shown in simulated time,
// where a busy machine makes nothing late.
func steady(t *testing.T, calls []natsserver.Call, interval time.Duration) {
	t.Helper()
	looks := map[string][]time.Time{}
	for _, c := range calls {
		looks[c.Stream] = append(looks[c.Stream], c.Time)
	}
	if len(looks) != crowd {
		t.Errorf("%d streams were looked at, want %d", len(looks), crowd)
	}
	shortest := interval * 9 / 10
	var gaps []time.Duration
	for _, name := range slices.Sorted(maps.Keys(looks)) {
		for i, at := range looks[name][1:] {
			gap := at.Sub(looks[name][i])
			gaps = append(gaps, gap)
			if gap < shortest {
				t.Errorf("%s: %s between two looks, want at least %s", name, gap, shortest)
			}
		}
	}
	if len(gaps) > 0 {
		slices.Sort(gaps)
		t.Logf("between two looks: shortest %s, median %s, longest %s", gaps[0], gaps[len(gaps)/2], gaps[len(gaps)-1])
	}
}

// restart: an operator that finds everything as it left it writes nothing.
func (b *bench) restart(t *testing.T) {
	nt, streams := b.hundred(t)
	nt.operator.Stop()
	from := nt.mark()
	nt.start()
	nt.observed(from.nats, streams)
	nt.operator.Stop() // after this nothing is on its way
	c := nt.cost(from, nt.mark())
	nt.start()
	nt.deleteAll(streams)
	nt.operator.Stop()

	sum := c.sum()
	t.Logf("restart with %d Ready Streams: Kubernetes %s%s\nNATS changes %d, looks %d",
		crowd, c.kubernetes.Counts(), c.kubernetes.Of(audit.Read), sum.Changes, sum.Looks)
	if sum.Writes > 0 || sum.Changes > 0 || sum.Looks != crowd {
		t.Errorf("want no write, no change and %d looks: %s", crowd, c)
	}
	for _, r := range c.kubernetes.Of(audit.Read) {
		if r.Object.Group == v1alpha1.GroupVersion.Group && r.Verb == "get" {
			t.Errorf("read an object live: %s", r)
		}
	}
}

// observed waits until each stream was looked at.
func (nt *natsTest) observed(from int, streams []*v1alpha1.Stream) {
	nt.t.Helper()
	deadline := time.After(poll.Patience)
	for {
		seen := map[string]bool{}
		for _, c := range nt.nats.Calls()[from:] {
			seen[c.Stream] = true
		}
		if len(seen) == len(streams) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // a log has nothing to wait on
		case <-deadline:
			nt.t.Fatalf("after the restart, %d streams of %d were looked at", len(seen), len(streams))
		}
	}
}

func (nt *natsTest) deleteAll(streams []*v1alpha1.Stream) {
	nt.t.Helper()
	if err := nt.client.DeleteAllOf(nt.t.Context(), &v1alpha1.Stream{}, client.InNamespace(nt.namespace)); err != nil {
		nt.t.Fatal(err)
	}
	for _, s := range streams {
		testenv.Gone(nt.t, nt.client, s, "the stream to be gone")
	}
}
