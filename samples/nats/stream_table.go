package nats

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// The values in the spec and the corresponding values of NATS.
var ( //nolint:gochecknoglobals // constant tables
	retentions = map[string]jetstream.RetentionPolicy{
		"limits": jetstream.LimitsPolicy, "interest": jetstream.InterestPolicy, "workqueue": jetstream.WorkQueuePolicy,
	}
	discards     = map[string]jetstream.DiscardPolicy{"old": jetstream.DiscardOld, "new": jetstream.DiscardNew}
	storages     = map[v1alpha1.Storage]jetstream.StorageType{"file": jetstream.FileStorage, "memory": jetstream.MemoryStorage}
	compressions = map[string]jetstream.StoreCompression{"none": jetstream.NoCompression, "s2": jetstream.S2Compression}
	persistModes = map[string]jetstream.PersistModeType{"default": jetstream.DefaultPersistMode, "async": jetstream.AsyncPersistMode}
)

// streamTable lists every setting of a stream: its field in the spec, its field in NATS, and how it can
// be changed. Tests check that it is complete, and that NATS handles each change as the last column says.
func streamTable(s v1alpha1.StreamSpec, c *jetstream.StreamConfig) []setting {
	sealed := c.Sealed // NATS sets these itself for a sealed stream
	return []setting{
		plain("spec.description", stated(s.Description), &c.Description, inPlace),
		unless(s.Subjects != nil && len(s.Subjects) == 0 && listensOnItsName(c), unordered("spec.subjects", s.Subjects, &c.Subjects)),
		choice("spec.retention", s.Retention, &c.Retention, retentions, retentionChange),
		limit("spec.maxConsumers", s.MaxConsumers, &c.MaxConsumers, inPlace),
		limit("spec.maxMsgs", s.MaxMsgs, &c.MaxMsgs, inPlace),
		limit("spec.maxBytes", s.MaxBytes, &c.MaxBytes, inPlace),
		limit("spec.maxMsgsPerSubject", s.MaxMsgsPerSubject, &c.MaxMsgsPerSubject, inPlace),
		limit("spec.maxMsgSize", s.MaxMsgSize, &c.MaxMsgSize, inPlace),
		ignoredIf(sealed, length("spec.maxAge", s.MaxAge, &c.MaxAge, inPlace)),
		ignoredIf(sealed, choice("spec.discard", s.Discard, &c.Discard, discards, inPlace)),
		plain("spec.discardPerSubject", s.DiscardPerSubject, &c.DiscardNewPerSubject, inPlace),
		choice("spec.storage", s.Storage, &c.Storage, storages, fixed),
		plain("spec.replicas", s.Replicas, &c.Replicas, inPlace),
		plain("spec.noAck", s.NoAck, &c.NoAck, inPlace),
		unless(none(s.DuplicateWindow) && c.Duplicates == usualDuplicates(c.MaxAge), length("spec.duplicateWindow", s.DuplicateWindow, &c.Duplicates, inPlace)),
		whole("spec.placement", placement(s.Placement), &c.Placement, inPlace),
		whole("spec.mirror", mirror(s.Mirror), &c.Mirror, mirrorChange),
		sources("spec.sources", s.Sources, &c.Sources, source),
		plain("spec.sealed", s.Sealed, &c.Sealed, oneWay),
		ignoredIf(sealed, plain("spec.denyDelete", s.DenyDelete, &c.DenyDelete, oneWay)),
		ignoredIf(sealed, plain("spec.denyPurge", s.DenyPurge, &c.DenyPurge, oneWay)),
		ignoredIf(sealed, plain("spec.allowRollup", s.AllowRollup, &c.AllowRollup, inPlace)),
		choice("spec.compression", s.Compression, &c.Compression, compressions, inPlace),
		number("spec.firstSequence", s.FirstSequence, &c.FirstSeq, fixed),
		whole("spec.subjectTransform", subjectTransform(s.SubjectTransform), &c.SubjectTransform, inPlace),
		whole("spec.republish", republish(s.Republish), &c.RePublish, inPlace),
		plain("spec.allowDirect", s.AllowDirect, &c.AllowDirect, inPlace),
		ignoredIf(localMirror(c), plain("spec.mirrorDirect", s.MirrorDirect, &c.MirrorDirect, inPlace)),
		whole("spec.consumerLimits", consumerLimits(s.ConsumerLimits), &c.ConsumerLimits, inPlace),
		plain("spec.allowMsgTtl", s.AllowMsgTTL, &c.AllowMsgTTL, oneWay),
		length("spec.subjectDeleteMarkerTtl", s.SubjectDeleteMarkerTTL, &c.SubjectDeleteMarkerTTL, inPlace),
		plain("spec.allowMsgCounter", s.AllowMsgCounter, &c.AllowMsgCounter, fixed),
		plain("spec.allowAtomicPublish", s.AllowAtomicPublish, &c.AllowAtomicPublish, inPlace),
		plain("spec.allowBatchPublish", s.AllowBatchPublish, &c.AllowBatchPublish, inPlace),
		plain("spec.allowMsgSchedules", s.AllowMsgSchedules, &c.AllowMsgSchedules, oneWay),
		choice("spec.persistMode", s.PersistMode, &c.PersistMode, persistModes, fixed),
		metadata("spec.metadata", s.Metadata, &c.Metadata),
	}
}

// retentionChange: a stream becomes a work queue, or stops being one, only by re-creation.
func retentionChange(have, want jetstream.RetentionPolicy) external.Effect {
	if have == jetstream.WorkQueuePolicy || want == jetstream.WorkQueuePolicy {
		return external.Recreate
	}
	return external.InPlace
}

// mirrorChange: a mirror can become an ordinary stream; any other change requires re-creation.
func mirrorChange(_, want *jetstream.StreamSource) external.Effect {
	if want == nil {
		return external.InPlace
	}
	return external.Recreate
}

// listensOnItsName: a stream without subjects that copies nothing listens on its own name.
func listensOnItsName(c *jetstream.StreamConfig) bool {
	return c.Mirror == nil && len(c.Sources) == 0 && slices.Equal(c.Subjects, []string{c.Name})
}

// usualDuplicates is the default duplicate window of NATS.
func usualDuplicates(maxAge time.Duration) time.Duration {
	if maxAge > 0 {
		return min(maxAge, 2*time.Minute)
	}
	return 2 * time.Minute
}

// localMirror reports whether the stream is a mirror of a stream in the same account, from which NATS
// takes settings.
func localMirror(c *jetstream.StreamConfig) bool { return c.Mirror != nil && c.Mirror.External == nil }

// ignoredIf is a setting whose differences are reported but not enforced if the condition is true.
func ignoredIf(holds bool, s setting) setting {
	if holds {
		s.differs = external.Ignore(s.differs)
	}
	return s
}

// The functions below convert parts of the spec into the types of NATS. Nil means not managed; a pointer
// to nil means none.

func placement(p *v1alpha1.Placement) **jetstream.Placement {
	if p == nil {
		return nil
	}
	if p.Cluster == "" && len(p.Tags) == 0 {
		return new((*jetstream.Placement)(nil))
	}
	return new(&jetstream.Placement{Cluster: p.Cluster, Tags: slices.Clone(p.Tags)})
}

func mirror(s *v1alpha1.StreamSource) **jetstream.StreamSource {
	if s == nil {
		return nil
	}
	if s.Name == "" {
		return new((*jetstream.StreamSource)(nil))
	}
	return new(new(source(*s)))
}

func subjectTransform(t *v1alpha1.SubjectTransform) **jetstream.SubjectTransformConfig {
	if t == nil {
		return nil
	}
	if t.Dest == "" {
		return new((*jetstream.SubjectTransformConfig)(nil))
	}
	return new(&jetstream.SubjectTransformConfig{Source: t.Source, Destination: t.Dest})
}

func republish(r *v1alpha1.Republish) **jetstream.RePublish {
	if r == nil {
		return nil
	}
	if r.Destination == "" {
		return new((*jetstream.RePublish)(nil))
	}
	// NATS writes ">" if the source is empty.
	return new(&jetstream.RePublish{Source: firstOf(r.Source, ">"), Destination: r.Destination, HeadersOnly: r.HeadersOnly})
}

func consumerLimits(l *v1alpha1.ConsumerLimits) *jetstream.StreamConsumerLimits {
	if l == nil {
		return nil
	}
	out := &jetstream.StreamConsumerLimits{}
	if l.InactiveThreshold != nil {
		out.InactiveThreshold = l.InactiveThreshold.Duration.Duration
	}
	if l.MaxAckPending != nil {
		out.MaxAckPending = *l.MaxAckPending
	}
	return out
}

// sources is the setting for streams to copy from. Their order does not matter. If want is nil, it is not
// managed.
func sources(path string, want []v1alpha1.StreamSource, have *[]*jetstream.StreamSource,
	convert func(v1alpha1.StreamSource) jetstream.StreamSource,
) setting {
	if want == nil {
		return setting{}
	}
	next := make([]*jetstream.StreamSource, 0, len(want))
	for _, w := range want {
		next = append(next, new(convert(w)))
	}
	return setting{
		differs: external.Set(path, texts(next), texts(*have)),
		apply:   func() { *have = next },
	}
}

func texts(in []*jetstream.StreamSource) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, text(s))
	}
	return out
}
