package nats_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// What NATS does with each change of each setting of a bucket.
func TestKeyValueChanges(t *testing.T) {
	_, client := startNATS(t, natsserver.Options{})
	b := keyValues(client)
	for _, origin := range []string{"origin", "other"} {
		b.create(t, keyValue(origin, v1alpha1.KeyValueSpec{}))
	}
	tested := map[string]bool{"bucket": true, "recreate": true}

	for name, tc := range keyValueChanges() {
		field, _, _ := strings.Cut(name, ",")
		tested[field] = true
		t.Run(name, func(t *testing.T) {
			obj := keyValue(strings.NewReplacer(" ", "_", ",", "").Replace(name), tc.base)
			b.create(t, obj)
			wantNothing(t, "after the creation", b.changes(t, obj))
			before := b.observe(t, obj).Have

			obj.Spec = tc.next
			obj.Spec.Recreate = v1alpha1.RecreateAllowed
			wantChanges(t, tc, "spec."+field, b.compare(obj, before))
			err := b.tryUpdate(t, obj)
			wantEffect(t, tc, err, b.changes(t, obj))
			b.remove(t, obj)
		})
	}
	for _, f := range specFields(reflect.TypeFor[v1alpha1.KeyValueSpec]()) {
		if !tested[f] {
			t.Errorf("no change of spec.%s is tested", f)
		}
	}
}

func keyValueChanges() map[string]change[v1alpha1.KeyValueSpec] {
	type spec = v1alpha1.KeyValueSpec
	from := func(names ...string) []v1alpha1.StreamSource {
		out := []v1alpha1.StreamSource{}
		for _, n := range names {
			out = append(out, v1alpha1.StreamSource{Name: n})
		}
		return out
	}
	return map[string]change[spec]{
		"description":           {why: "free text", base: spec{Description: new("old")}, next: spec{Description: new("new")}},
		"maxValueSize":          {why: "a limit", base: spec{MaxValueSize: new(int32(1024))}, next: spec{MaxValueSize: new(int32(0))}},
		"history":               {why: "a limit", base: spec{History: new(int64(3))}, next: spec{History: new(int64(5))}},
		"ttl":                   {why: "a limit", base: spec{TTL: lasting(time.Hour)}, next: spec{TTL: lasting(time.Minute)}},
		"ttl, longer":           {why: "the window for duplicates follows", base: spec{TTL: lasting(time.Minute)}, next: spec{TTL: lasting(time.Hour)}},
		"ttl, none":             {why: "0s means for ever", base: spec{TTL: lasting(time.Minute)}, next: spec{TTL: lasting(0)}},
		"limitMarkerTtl":        {why: "for markers that come next", base: spec{LimitMarkerTTL: lasting(time.Minute)}, next: spec{LimitMarkerTTL: lasting(time.Hour)}},
		"limitMarkerTtl, first": {why: "it brings TTLs per key", base: spec{}, next: spec{LimitMarkerTTL: lasting(time.Hour)}, paths: []string{"spec.limitMarkerTtl", "the bucket's allowMsgTtl"}},
		"maxBytes":              {why: "a limit", base: spec{MaxBytes: new(int64(1 << 20))}, next: spec{MaxBytes: new(int64(-1))}},
		"storage":               {why: "values are not carried over", base: spec{}, next: spec{Storage: new(v1alpha1.Storage("memory"))}, effect: external.Recreate},
		"replicas":              {why: "this server is alone; a cluster does it in place", base: spec{Replicas: new(1)}, next: spec{Replicas: new(3)}, silent: true},
		"placement":             {why: "moves within a cluster", base: spec{}, next: spec{Placement: &v1alpha1.Placement{Tags: []string{"ssd"}}}},
		"republish":             {why: "for what comes next", base: spec{}, next: spec{Republish: &v1alpha1.Republish{Destination: "rep.>"}}},
		"mirror":                {why: "a bucket copies one for good", base: spec{Mirror: &from("origin")[0]}, next: spec{Mirror: &from("other")[0]}, effect: external.Recreate},
		"sources":               {why: "sources come and go", base: spec{Sources: from("origin")}, next: spec{Sources: from("KV_other", "origin")}},
		"sources, transformed":  {why: "sources come and go", base: spec{Sources: from("origin")}, next: spec{Sources: []v1alpha1.StreamSource{{Name: "KV_origin", SubjectTransforms: []v1alpha1.SubjectTransform{{Source: "$KV.origin.a", Dest: "$KV.sources_transformed.b"}}}}}},
		"sources, none":         {why: "an empty value removes", base: spec{Sources: from("origin")}, next: spec{Sources: from()}},
		"compression":           {why: "for what comes next", base: spec{Compression: new(false)}, next: spec{Compression: new(true)}},
		"compression, off":      {why: "for what comes next", base: spec{Compression: new(true)}, next: spec{Compression: new(false)}},
		"metadata":              {why: "labels", base: spec{Metadata: map[string]string{"team": "a"}}, next: spec{Metadata: map[string]string{"team": "b"}}},
	}
}
