package nats_test

import (
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// fixtureOf checks a driver with objects that differ in their names.
func fixtureOf[T external.Object](c *nats.Client, obj func() T, rename func(T, string), changes map[string]func(T)) externaltest.Fixture[T, *nats.Client] {
	return externaltest.Fixture[T, *nats.Client]{
		Client: c, Changes: changes,
		New: func(name string) T {
			o := obj()
			o.SetName(name)
			rename(o, name)
			return o
		},
		Options: external.Options[T, *nats.Client]{UniqueNames: true, CreateGrace: time.Second},
	}
}

func TestConformance(t *testing.T) {
	_, c := startNATS(t, natsserver.Options{})
	streams(c).create(t, stream("origin", v1alpha1.StreamSpec{Subjects: []string{"origin.>"}}))
	keyValues(c).create(t, keyValue("first", v1alpha1.KeyValueSpec{}))

	streamNamed := func(s *v1alpha1.Stream, name string) { s.Spec.Name = name }
	consumerNamed := func(s *v1alpha1.Consumer, name string) { s.Spec.Name = name }
	bucketNamed := func(s *v1alpha1.KeyValue, name string) { s.Spec.Bucket = name }
	for name, obj := range map[string]func() *v1alpha1.Stream{
		"minimal": func() *v1alpha1.Stream { return stream("", v1alpha1.StreamSpec{}) }, "maximal": maximalStream,
	} {
		t.Run("stream, "+name, func(t *testing.T) {
			externaltest.Run(t, nats.Streams{}, fixtureOf(c, obj, streamNamed, map[string]func(*v1alpha1.Stream){
				"maxMsgs":  func(s *v1alpha1.Stream) { s.Spec.MaxMsgs = new(int64(77)) },
				"metadata": func(s *v1alpha1.Stream) { s.Spec.Metadata = map[string]string{"team": "dock"} },
			}))
		})
	}
	for name, obj := range map[string]func() *v1alpha1.Consumer{
		"minimal": func() *v1alpha1.Consumer { return consumer("", "origin", v1alpha1.ConsumerSpec{}) },
		"maximal": maximalConsumer, "push": maximalPushConsumer,
	} {
		t.Run("consumer, "+name, func(t *testing.T) {
			externaltest.Run(t, nats.Consumers{}, fixtureOf(c, obj, consumerNamed, map[string]func(*v1alpha1.Consumer){
				"description": func(s *v1alpha1.Consumer) { s.Spec.Description = new("for the dock") },
			}))
		})
	}
	for name, obj := range map[string]func() *v1alpha1.KeyValue{
		"minimal": func() *v1alpha1.KeyValue { return keyValue("", v1alpha1.KeyValueSpec{}) }, "maximal": maximalKeyValue,
	} {
		t.Run("bucket, "+name, func(t *testing.T) {
			externaltest.Run(t, nats.KeyValues{}, fixtureOf(c, obj, bucketNamed, map[string]func(*v1alpha1.KeyValue){
				"maxBytes": func(s *v1alpha1.KeyValue) { s.Spec.MaxBytes = new(int64(2 << 20)) },
			}))
		})
	}
}
