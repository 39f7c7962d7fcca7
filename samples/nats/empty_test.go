package nats_test

import (
	"testing"

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
