package nats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// copying is how a stream that copies others can be, once NATS has tried.
func copying() map[string]struct {
	why             string
	spec            v1alpha1.StreamSpec
	reason, message string // of the degraded; none is available
} {
	from := func(names ...string) (out []v1alpha1.StreamSource) {
		for _, n := range names {
			out = append(out, v1alpha1.StreamSource{Name: n})
		}
		return out
	}
	return map[string]struct {
		why             string
		spec            v1alpha1.StreamSpec
		reason, message string
	}{
		"mirror":  {why: "it copies", spec: v1alpha1.StreamSpec{Mirror: &from("origin")[0]}},
		"sources": {why: "it copies", spec: v1alpha1.StreamSpec{Sources: from("origin")}},
		"mirror-of-nothing": {
			why: "NATS says so a moment after the creation", spec: v1alpha1.StreamSpec{Mirror: &from("nowhere")[0]},
			reason: "MirrorFails", message: `NATS cannot copy from stream "nowhere": stream not found (error 10059)`,
		},
		"sources-of-nothing": {
			why: "each is named, in an order that stays", spec: v1alpha1.StreamSpec{Sources: from("nowhere", "origin", "neverwhere")},
			reason: "SourceFails", message: `NATS cannot copy from stream "neverwhere": stream not found (error 10059); NATS cannot copy from stream "nowhere": stream not found (error 10059)`,
		},
	}
}

func TestStreamsThatCopy(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{})
	b := streams(c)
	b.create(t, stream("origin", v1alpha1.StreamSpec{}))
	for name, tc := range copying() {
		t.Run(name, func(t *testing.T) {
			obj := stream(name, tc.spec)
			b.create(t, obj)
			// A new one is not taken for usable before NATS has tried.
			seen := b.observe(t, obj)
			for seen.Phase == external.PhaseCreating {
				seen = again(t, b, obj, seen)
			}
			if tc.message == "" {
				if seen.Phase != external.PhaseAvailable {
					t.Fatalf("%s: %s, %s", tc.why, seen.Phase, seen.Message)
				}
				return
			}
			wantDiff(t, tc.why, [3]string{string(external.PhaseDegraded), tc.reason, tc.message}, [3]string{string(seen.Phase), seen.Reason, seen.Message})
		})
	}
}

// Nobody answers for another account, and NATS never says so: the stream is not taken for
// usable, at first because it is new.
func TestAStreamThatCopiesFromSilence(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{})
	b, obj := streams(c), stream("far", v1alpha1.StreamSpec{Mirror: &v1alpha1.StreamSource{Name: "orders", ExternalAPIPrefix: "$JS.hub.API"}})
	b.create(t, obj)
	if seen := b.observe(t, obj); seen.Phase != external.PhaseCreating {
		t.Errorf("a new one is %s", seen.Phase)
	}

	// The same answer of NATS, with its clock put forward.
	told := `{"config":{"name":"far"},"created":"2026-01-01T00:00:00Z","ts":"2026-01-01T00:00:11Z",
		"mirror":{"name":"orders","external":{"api":"$JS.hub.API","deliver":""},"lag":0,"active":-1}}`
	later := streams(nats.NewClient("here", func(context.Context, string, []byte) ([]byte, error) { return []byte(told), nil }))
	seen := later.observe(t, obj)
	wantDiff(t, "after a while", `Degraded OriginSilent: nothing has arrived from stream "orders" yet, and NATS does not say why; check that the stream exists and may be read`,
		string(seen.Phase)+" "+seen.Reason+": "+seen.Message)
}

// again looks once more when the observation says to.
func again(t *testing.T, b bench[*v1alpha1.Stream, *nats.LiveStream], obj *v1alpha1.Stream, seen external.Observation[*nats.LiveStream]) external.Observation[*nats.LiveStream] {
	t.Helper()
	if seen.PollAfter <= 0 || seen.PollAfter > time.Second {
		t.Fatalf("look again after %s; NATS takes a fraction of a second", seen.PollAfter)
	}
	select {
	case <-time.After(seen.PollAfter):
	case <-t.Context().Done():
		t.Fatal("out of time")
	}
	return b.observe(t, obj)
}

func TestOperatorOfStreamsThatCopy(t *testing.T) {
	t.Parallel()
	r := startOperator(t, natsserver.Options{})
	objects := map[string]*v1alpha1.Stream{
		"MirrorFails": stream("copy", v1alpha1.StreamSpec{Mirror: &v1alpha1.StreamSource{Name: "away"}}),
		"SourceFails": stream("mixed", v1alpha1.StreamSpec{Sources: []v1alpha1.StreamSource{{Name: "away"}}}),
	}
	for reason, obj := range objects {
		r.apply(obj)
		obj = until(r, obj, "Verifying")
		r.wantMessage(obj, api.ConditionReady, "False "+reason+": ")
		if got := message(obj, api.ConditionReady); !strings.Contains(got, `NATS cannot copy from stream "away": stream not found (error 10059)`) {
			t.Errorf("it says %q", got)
		}
	}
	if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "away"}); err != nil {
		t.Fatal(err)
	}
	// NATS tries again within 10 s; the drift interval is ten minutes.
	for _, obj := range objects {
		until(r, obj, "Succeeded")
		r.remove(obj)
	}
}
