package nats_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
	"github.com/trimtab-dev/trimtab/samples/nats/nack"
)

// What NACK made is taken over as the README says, by objects converted from NACK's own: the
// API server takes each, and nothing in NATS changes but marks of ownership.
func TestComingFromNACK(t *testing.T) {
	exported, err := os.ReadFile("nack/testdata/nack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	converted, err := nack.Convert(exported)
	if err != nil {
		t.Fatal(err)
	}
	r := startOperator(t, natsserver.Options{})
	made := asNACK(t, r.js)
	before := made()

	for _, o := range converted.Objects {
		if err := r.try(t, o.DeepCopy()); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		into := map[string]external.Object{"Stream": &v1alpha1.Stream{}, "KeyValue": &v1alpha1.KeyValue{}, "Consumer": &v1alpha1.Consumer{}}[o.GetKind()]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
			t.Fatal(err)
		}
		r.apply(into)
		until(r, into, "Succeeded")
	}
	wantDiff(t, "configurations in NATS", before, made())
}

// asNACK makes what NACK makes of the exported objects, and returns how it is, without labels.
func asNACK(t *testing.T, js jetstream.JetStream) func() map[string]map[string]string {
	t.Helper()
	streams := []jetstream.StreamConfig{
		{Name: "elsewhere"},
		{
			Name: "ORDERS", Subjects: []string{"orders.>"}, MaxAge: 168 * time.Hour, Duplicates: 2 * time.Minute, AllowDirect: true,
			Metadata:  map[string]string{"team": "shop"},
			RePublish: &jetstream.RePublish{Source: "orders.>", Destination: "copy.>", HeadersOnly: true},
		},
		{
			Name: "all-orders", Storage: jetstream.MemoryStorage, AllowBatchPublish: true,
			Sources: []*jetstream.StreamSource{{
				Name: "ORDERS", SubjectTransforms: []jetstream.SubjectTransformConfig{{Source: "orders.*", Destination: "all.{{wildcard(1)}}"}},
			}},
		},
	}
	for _, cfg := range streams {
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "settings", History: 5, LimitMarkerTTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	consumers := map[string]jetstream.ConsumerConfig{
		"ORDERS": {
			Durable: "billing", Description: "what is paid", DeliverPolicy: jetstream.DeliverByStartTimePolicy,
			OptStartTime: new(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), FilterSubjects: []string{"orders.paid", "orders.refunded"}, MaxDeliver: 5,
			Metadata: map[string]string{"team": ""}, PriorityPolicy: jetstream.PriorityPolicyPinned, PriorityGroups: []string{"all"}, PinnedTTL: 90 * time.Second,
		},
		"elsewhere": {Durable: "audit", BackOff: []time.Duration{time.Second, time.Minute}, MaxDeliver: 3, MaxAckPending: -1},
	}
	for stream, cfg := range consumers {
		if _, err := js.CreateConsumer(t.Context(), stream, cfg); err != nil {
			t.Fatal(err)
		}
	}
	return func() map[string]map[string]string {
		out := map[string]map[string]string{}
		for _, name := range []string{"ORDERS", "all-orders", "KV_settings"} {
			s, err := js.Stream(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = leaves(t, encoded(t, s.CachedInfo().Config))
		}
		for stream, cfg := range consumers {
			c, err := js.Consumer(t.Context(), stream, cfg.Durable)
			if err != nil {
				t.Fatal(err)
			}
			have := c.CachedInfo().Config
			slices.Sort(have.FilterSubjects)
			out[cfg.Durable] = leaves(t, encoded(t, have))
		}
		for _, leaf := range out {
			delete(leaf, "metadata")
		}
		return out
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
