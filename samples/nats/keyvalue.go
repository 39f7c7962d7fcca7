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

// KeyValues is the driver of [v1alpha1.KeyValue]. A bucket is a stream whose name, subjects and some
// other settings follow a convention of NATS clients (ADR-8 of NATS).
type KeyValues struct{}

// bucketPrefix is the prefix of the name of a bucket's stream.
const bucketPrefix = "KV_"

// ExternalName returns the name of the bucket's stream.
func (KeyValues) ExternalName(k *v1alpha1.KeyValue) (string, error) {
	return bucketPrefix + bucketOf(k), nil
}

func bucketOf(k *v1alpha1.KeyValue) string { return firstOf(k.Spec.Bucket, k.Name) }

// Observe reads the bucket's stream.
func (KeyValues) Observe(ctx context.Context, r external.ObserveRequest[*v1alpha1.KeyValue, *Client]) (external.Observation[*LiveStream], error) {
	return observeStream(ctx, r.Client, r.ID)
}

// Compare compares the settings in the table.
func (KeyValues) Compare(r external.CompareRequest[*v1alpha1.KeyValue, *LiveStream]) external.Changes {
	cfg := r.Have.Config
	return differences(bucketTable(r.Object, &cfg), r.Object.Spec.Recreate)
}

// Create creates a bucket.
func (KeyValues) Create(ctx context.Context, r external.CreateRequest[*v1alpha1.KeyValue, *Client]) (external.CreateResponse[*LiveStream], error) {
	cfg := newBucket(r.ID)
	applyAll(bucketTable(r.Object, &cfg))
	cfg.Metadata = r.Mark.On(cfg.Metadata)
	return external.CreateResponse[*LiveStream]{}, createStream(ctx, r.Client, cfg)
}

// Update sends the present configuration with the settings of the spec.
func (KeyValues) Update(ctx context.Context, r external.UpdateRequest[*v1alpha1.KeyValue, *Client, *LiveStream]) (external.UpdateResponse[*LiveStream], error) {
	cfg := r.Have.Config
	applyAll(bucketTable(r.Object, &cfg))
	return external.UpdateResponse[*LiveStream]{}, updateStream(ctx, r.Client, r.Have, cfg)
}

// Delete deletes the bucket with all its keys.
func (KeyValues) Delete(ctx context.Context, r external.DeleteRequest[*v1alpha1.KeyValue, *Client]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, deleteStream(ctx, r.Client, r.ID)
}

// Mark adds the ownership mark to a bucket that existed before its object.
func (KeyValues) Mark(ctx context.Context, r external.MarkRequest[*v1alpha1.KeyValue, *Client]) (external.MarkResponse, error) {
	return external.MarkResponse{}, markStream(ctx, r.Client, r.ID, r.Mark)
}

// Unmark removes the ownership mark from a bucket that is kept.
func (KeyValues) Unmark(ctx context.Context, r external.UnmarkRequest[*v1alpha1.KeyValue, *Client]) (external.UnmarkResponse, error) {
	return external.UnmarkResponse{}, unmarkStream(ctx, r.Client, r.ID)
}

// Classify returns the meaning of an error from NATS.
func (KeyValues) Classify(err error) external.Class { return classify(err) }

// Reflect shows settings of the bucket. Its size changes too often to be shown in status.
func (KeyValues) Reflect(r external.ReflectRequest[*v1alpha1.KeyValue, *LiveStream]) {
	status, have := &r.Object.Status, r.Have
	status.Bucket = strings.TrimPrefix(have.Config.Name, bucketPrefix)
	status.Stream = have.Config.Name
	status.History = have.Config.MaxMsgsPerSubject
	status.Storage = string(wordFor(storages, have.Config.Storage))
	status.Replicas = have.Config.Replicas
	status.Created = new(metav1.NewTime(have.Created).Rfc3339Copy())
}

// bucketTable lists every setting of a bucket, and the settings of its stream that make it a bucket,
// which do not depend on the spec.
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
	if c.Mirror != nil || s.Mirror != nil { // its keys have the other bucket's subjects
		table = append(table, ignoredIf(localMirror(c), plain("the bucket's mirrorDirect", new(true), &c.MirrorDirect, inPlace)))
	} else {
		table = append(table, unordered("the bucket's subjects", []string{bucketSubjects(bucketOf(k))}, &c.Subjects))
	}
	if s.LimitMarkerTTL != nil && s.LimitMarkerTTL.Duration.Duration > 0 {
		table = append(table, plain("the bucket's allowMsgTtl", new(true), &c.AllowMsgTTL, inPlace))
	}
	return table
}

// newBucket returns the configuration of a new bucket before the spec is applied: one value per key and
// no limits. The default of the stream would keep all values.
func newBucket(stream string) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: stream, MaxMsgsPerSubject: 1, Duplicates: longestDuplicates}
}

func bucketSubjects(bucket string) string { return "$KV." + bucket + ".>" }

// longestDuplicates is the duplicate window that NATS clients use for a bucket.
const longestDuplicates = 2 * time.Minute

// duplicates keeps the duplicate window within the time to live, as NATS requires. Users cannot set it,
// so a difference in it alone does not count.
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

// switched returns the stream's setting for compression.
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

// bucketSource returns a source that copies keys from another bucket under the same names. A source with
// transforms is passed on unchanged.
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

// streamOf returns the name of a bucket's stream, given the name of the bucket or of the stream.
func streamOf(bucket string) string { return bucketPrefix + strings.TrimPrefix(bucket, bucketPrefix) }
