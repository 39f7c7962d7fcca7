package nats_test

import (
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// A template writes an empty text where a value was not given. That asks for nothing: neither
// beside the field that was meant nor of a thing that has a value.
func TestEmptyTextsAskForNothing(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{})
	streams(c).create(t, stream("s", v1alpha1.StreamSpec{Subjects: []string{"s.>"}}))
	full := v1alpha1.ConsumerSpec{
		Description: new("theirs"), FilterSubjects: []string{"s.a", "s.b"}, SampleFreq: new("10%"),
		DeliverSubject: new("deliver"), DeliverGroup: new("workers"),
	}
	empty := v1alpha1.ConsumerSpec{
		Description: new(""), FilterSubject: new(""), SampleFreq: new(""), DeliverSubject: new(""), DeliverGroup: new(""),
	}
	b := consumers(c)

	t.Run("of a consumer that is there", func(t *testing.T) {
		b.create(t, consumer("there", "s", full))
		before := leaves(t, b.observe(t, consumer("there", "s", full)).Have.Reported)
		wantNothing(t, "empty texts", b.changes(t, consumer("there", "s", empty)))
		both := empty
		both.FilterSubjects = full.FilterSubjects
		wantNothing(t, "the empty one of two ways to filter", b.changes(t, consumer("there", "s", both)))
		if err := b.tryUpdate(t, consumer("there", "s", both)); err != nil {
			t.Fatal(err)
		}
		wantDiff(t, "configuration", before, leaves(t, b.observe(t, consumer("there", "s", both)).Have.Reported))
	})
	t.Run("of a new consumer", func(t *testing.T) {
		spec := empty
		spec.FilterSubjects = []string{"s.a", "s.b"}
		obj := consumer("new", "s", spec)
		b.create(t, obj)
		wantDiff(t, "filters", []string{"s.a", "s.b"}, b.observe(t, obj).Have.Config.FilterSubjects)
		none := obj.DeepCopy()
		none.Spec.FilterSubjects = []string{}
		b.converge(t, none)
		wantDiff(t, "filters, once none are asked for", []string(nil), b.observe(t, none).Have.Config.FilterSubjects)
	})
	t.Run("of a stream and a bucket", func(t *testing.T) {
		streams(c).create(t, stream("described", v1alpha1.StreamSpec{Description: new("theirs")}))
		wantNothing(t, "an empty text", streams(c).changes(t, stream("described", v1alpha1.StreamSpec{Description: new("")})))
		keyValues(c).create(t, keyValue("described", v1alpha1.KeyValueSpec{Description: new("theirs")}))
		wantNothing(t, "an empty text", keyValues(c).changes(t, keyValue("described", v1alpha1.KeyValueSpec{Description: new("")})))
	})
}

// TestEmptyValuesSettle: what asks for nothing, or for as little as possible, is made by NATS into
// something that the operator takes for what was asked, when it creates and when it changes.
func TestEmptyValuesSettle(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{})
	streams(c).create(t, stream("s", v1alpha1.StreamSpec{Subjects: []string{"s.>"}}))
	for name, spec := range map[string]v1alpha1.StreamSpec{
		"no-subjects":     {Subjects: []string{}},
		"no-window":       {DuplicateWindow: lasting(0)},
		"no-window-short": {DuplicateWindow: lasting(0), MaxAge: lasting(time.Minute)},
		"nothing":         {MaxAge: lasting(0), Placement: &v1alpha1.Placement{}, Sources: []v1alpha1.StreamSource{}, Metadata: map[string]string{}, MaxMsgs: new(int64(0))},
	} {
		t.Run("stream "+name, func(t *testing.T) {
			settles(t, streams(c), stream(name, v1alpha1.StreamSpec{Subjects: []string{name}, DuplicateWindow: lasting(time.Second)}), stream(name, spec))
		})
	}
	for name, spec := range map[string]v1alpha1.ConsumerSpec{
		"no-wait":   {AckWait: lasting(0)},
		"no-groups": {PriorityGroups: []string{}},
		"no-ttl":    {PriorityPolicy: new("pinnedClient"), PriorityGroups: []string{"a"}, PinnedTTL: lasting(0)},
		"nothing":   {Backoff: []v1alpha1.Duration{}, FilterSubjects: []string{}, InactiveThreshold: lasting(0), MaxDeliver: new(0), MaxRequestExpires: lasting(0), Metadata: map[string]string{}},
	} {
		t.Run("consumer "+name, func(t *testing.T) {
			settles(t, consumers(c), consumer(name, "s", v1alpha1.ConsumerSpec{AckWait: lasting(time.Minute)}), consumer(name, "s", spec))
		})
	}
}

// settles wants nothing to be left to do once spec is created, and once another one was changed
// to it.
func settles[T external.Object, O any](t *testing.T, b bench[T, O], other, spec T) {
	t.Helper()
	b.create(t, spec)
	wantNothing(t, "when created", b.changes(t, spec))
	b.remove(t, spec)
	b.create(t, other)
	b.converge(t, spec)
	wantNothing(t, "when changed", b.changes(t, spec))
}
