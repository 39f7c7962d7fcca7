package nats

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// KeyValues is the driver of [v1alpha1.KeyValue]. A bucket is a stream whose name, subjects
// and some settings follow a convention of NATS's clients (its design record ADR-8).
type KeyValues struct{}

// bucketPrefix is what the name of a bucket's stream starts with.
const bucketPrefix = "KV_"

// ExternalName is the name of the bucket's stream.
func (KeyValues) ExternalName(k *v1alpha1.KeyValue) (string, error) {
	return bucketPrefix + bucketOf(k), nil
}

func bucketOf(k *v1alpha1.KeyValue) string { return firstOf(k.Spec.Bucket, k.Name) }

// Observe asks for the bucket's stream.
func (KeyValues) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.KeyValue, *Client]) (external.Observation[*LiveStream], error) {
	return observeStream(ctx, r.Client, r.ID)
}

// Compare goes through the table.
func (KeyValues) Compare(r external.CompareRequest[*v1alpha1.KeyValue, *LiveStream]) external.Changes {
	cfg := r.Have.Config
	return differences(bucketTable(r.Object, &cfg), r.Object.Spec.Recreate)
}

// Create asks for a new bucket.
func (KeyValues) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.KeyValue, *Client]) (external.CreateResponse[*LiveStream], error) {
	cfg := newBucket(r.ID)
	applyAll(bucketTable(r.Object, &cfg))
	cfg.Metadata = r.Mark.On(cfg.Metadata)
	return external.CreateResponse[*LiveStream]{}, createStream(ctx, r.Client, cfg)
}

// Update sends the configuration that is there with the spec's settings over it.
func (KeyValues) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.KeyValue, *Client, *LiveStream]) (external.UpdateResponse[*LiveStream], error) {
	cfg := r.Have.Config
	applyAll(bucketTable(r.Object, &cfg))
	return external.UpdateResponse[*LiveStream]{}, updateStream(ctx, r.Client, r.Have, cfg)
}

// Delete removes the bucket with all its keys.
func (KeyValues) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.KeyValue, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, deleteStream(ctx, r.Client, r.ID)
}

// Mark puts the ownership mark on a bucket that was there before its object.
func (KeyValues) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.KeyValue, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, markStream(ctx, r.Client, r.ID, r.Mark)
}

// Unmark takes the ownership mark off a bucket that is to stay.
func (KeyValues) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.KeyValue, *Client]) (external.UnmarkResponse, error) {
	return external.UnmarkResponse{}, unmarkStream(ctx, r.Client, r.ID)
}

// Classify tells what NATS's errors mean.
func (KeyValues) Classify(err error) external.Class { return classify(err) }

// Reflect shows what a bucket is; how full it is changes too often to be written here.
func (KeyValues) Reflect(r external.ReflectRequest[*v1alpha1.KeyValue, *LiveStream]) {
	status, have := &r.Object.Status, r.Have
	status.Bucket = strings.TrimPrefix(have.Config.Name, bucketPrefix)
	status.Stream = have.Config.Name
	status.History = have.Config.MaxMsgsPerSubject
	status.Storage = string(wordFor(storages, have.Config.Storage))
	status.Replicas = have.Config.Replicas
	status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
}

// bucketTable is every setting of a bucket, and those of its stream that make it a bucket,
// which are kept whatever the spec says.
func bucketTable(k *v1alpha1.KeyValue, c *jetstream.StreamConfig) []setting {
	s := k.Spec
	table := []setting{
		plain("spec.description", stated(s.Description), &c.Description, inPlace),
		limit("spec.maxValueSize", s.MaxValueSize, &c.MaxMsgSize, inPlace),
		plain("spec.history", s.History, &c.MaxMsgsPerSubject, inPlace),
		length("spec.ttl", s.TTL, &c.MaxAge, inPlace),
		duplicates(s.TTL, &c.Duplicates),
		length("spec.limitMarkerTtl", s.LimitMarkerTTL, &c.SubjectDeleteMarkerTTL, inPlace),
		limit("spec.maxBytes", s.MaxBytes, &c.MaxBytes, inPlace),
		choice("spec.storage", s.Storage, &c.Storage, storages, fixed),
		plain("spec.replicas", s.Replicas, &c.Replicas, inPlace),
		whole("spec.placement", placement(s.Placement), &c.Placement, inPlace),
		whole("spec.republish", republish(s.Republish), &c.RePublish, inPlace),
		whole("spec.mirror", bucketMirror(s.Mirror), &c.Mirror, fixed),
		sources("spec.sources", s.Sources, &c.Sources, bucketSource(bucketOf(k))),
		choice("spec.compression", switched(s.Compression), &c.Compression, compressions, inPlace),
		metadata("spec.metadata", s.Metadata, &c.Metadata),

		plain("the bucket's allowRollup", new(true), &c.AllowRollup, inPlace),
		plain("the bucket's denyDelete", new(true), &c.DenyDelete, inPlace),
		plain("the bucket's allowDirect", new(true), &c.AllowDirect, inPlace),
		plain("the bucket's discard", new(jetstream.DiscardNew), &c.Discard, inPlace),
	}
	if c.Mirror != nil || s.Mirror != nil { // its keys come under the other bucket's subjects
		table = append(table, ignoredIf(localMirror(c), plain("the bucket's mirrorDirect", new(true), &c.MirrorDirect, inPlace)))
	} else {
		table = append(table, unordered("the bucket's subjects", []string{bucketSubjects(bucketOf(k))}, &c.Subjects))
	}
	if s.LimitMarkerTTL != nil && s.LimitMarkerTTL.Duration.Duration > 0 {
		table = append(table, plain("the bucket's allowMsgTtl", new(true), &c.AllowMsgTTL, inPlace))
	}
	return table
}

// newBucket is what a bucket starts from: one value per key, without limits. The stream
// behind it would keep all of them.
func newBucket(stream string) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: stream, MaxMsgsPerSubject: 1, Duplicates: longestDuplicates}
}

func bucketSubjects(bucket string) string { return "$KV." + bucket + ".>" }

// longestDuplicates is the window in which NATS's clients let a bucket look for duplicates.
const longestDuplicates = 2 * time.Minute

// duplicates keeps that window within the time to live, as NATS demands. It is no setting
// of the user's, so that a difference alone is none.
func duplicates(ttl *v1alpha1.Duration, have *time.Duration) setting {
	if ttl == nil {
		return setting{}
	}
	return setting{apply: func() {
		*have = longestDuplicates
		if ttl.Duration.Duration > 0 {
			*have = min(ttl.Duration.Duration, longestDuplicates)
		}
	}}
}

// switched is compression as a stream's setting has it.
func switched(on *bool) *string {
	if on == nil {
		return nil
	}
	if *on {
		return new("s2")
	}
	return new("none")
}

func bucketMirror(s *v1alpha1.StreamSource) **jetstream.StreamSource {
	if s == nil {
		return nil
	}
	m := source(*s)
	m.Name = streamOf(m.Name)
	return new(&m)
}

// bucketSource copies keys from another bucket under the names they have there. A source
// with transforms of its own is taken as it stands.
func bucketSource(into string) func(v1alpha1.StreamSource) jetstream.StreamSource {
	return func(s v1alpha1.StreamSource) jetstream.StreamSource {
		out := source(s)
		if len(out.SubjectTransforms) > 0 {
			return out
		}
		from := strings.TrimPrefix(out.Name, bucketPrefix)
		out.Name = streamOf(from)
		if out.External == nil || from != into {
			out.SubjectTransforms = []jetstream.SubjectTransformConfig{
				{Source: bucketSubjects(from), Destination: bucketSubjects(into)},
			}
		}
		return out
	}
}

// streamOf is the name of a bucket's stream, given either name.
func streamOf(bucket string) string { return bucketPrefix + strings.TrimPrefix(bucket, bucketPrefix) }
