package nats

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

// The values in the spec and the corresponding values of NATS.
var ( //nolint:gochecknoglobals // constant tables
	deliverPolicies = map[string]jetstream.DeliverPolicy{
		"all": jetstream.DeliverAllPolicy, "last": jetstream.DeliverLastPolicy, "new": jetstream.DeliverNewPolicy,
		"byStartSequence": jetstream.DeliverByStartSequencePolicy, "byStartTime": jetstream.DeliverByStartTimePolicy,
		"lastPerSubject": jetstream.DeliverLastPerSubjectPolicy,
	}
	ackPolicies = map[string]jetstream.AckPolicy{
		"explicit": jetstream.AckExplicitPolicy, "all": jetstream.AckAllPolicy, "none": jetstream.AckNonePolicy,
		"flowControl": jetstream.AckFlowControlPolicy,
	}
	replayPolicies = map[string]jetstream.ReplayPolicy{
		"instant": jetstream.ReplayInstantPolicy, "original": jetstream.ReplayOriginalPolicy,
	}
	priorityPolicies = map[string]jetstream.PriorityPolicy{
		"none": jetstream.PriorityPolicyNone, "pinnedClient": jetstream.PriorityPolicyPinned,
		"overflow": jetstream.PriorityPolicyOverflow, "prioritized": jetstream.PriorityPolicyPrioritized,
	}
)

// consumerTable lists every setting of a consumer: its field in the spec, its field in NATS, and how it
// can be changed. Tests check that it is complete, and that NATS handles each change as the last column
// says.
//
// now is the time of the server. A pause that is over counts as none.
func consumerTable(s v1alpha1.ConsumerSpec, c *jetstream.ConsumerConfig, now time.Time) []setting {
	// NATS sets the wait to the first backoff.
	backedOff := s.Backoff == nil && len(c.BackOff) > 0
	return []setting{
		plain("spec.description", stated(s.Description), &c.Description, inPlace),
		choice("spec.deliverPolicy", s.DeliverPolicy, &c.DeliverPolicy, deliverPolicies, fixed),
		number("spec.optStartSeq", s.OptStartSeq, &c.OptStartSeq, fixed),
		moment("spec.optStartTime", s.OptStartTime, &c.OptStartTime, fixed),
		choice("spec.ackPolicy", s.AckPolicy, &c.AckPolicy, ackPolicies, fixed),
		unless(none(s.AckWait) && c.AckWait == usualAckWait, ignoredIf(backedOff, length("spec.ackWait", s.AckWait, &c.AckWait, inPlace))),
		limit("spec.maxDeliver", s.MaxDeliver, &c.MaxDeliver, inPlace),
		backoff("spec.backoff", s.Backoff, &c.BackOff),
		filters(s, c),
		choice("spec.replayPolicy", s.ReplayPolicy, &c.ReplayPolicy, replayPolicies, fixed),
		plain("spec.sampleFreq", stated(s.SampleFreq), &c.SampleFrequency, inPlace),
		plain("spec.maxWaiting", s.MaxWaiting, &c.MaxWaiting, fixed),
		plain("spec.maxAckPending", s.MaxAckPending, &c.MaxAckPending, inPlace),
		plain("spec.headersOnly", s.HeadersOnly, &c.HeadersOnly, inPlace),
		plain("spec.maxRequestBatch", s.MaxRequestBatch, &c.MaxRequestBatch, inPlace),
		length("spec.maxRequestExpires", s.MaxRequestExpires, &c.MaxRequestExpires, inPlace),
		plain("spec.maxRequestMaxBytes", s.MaxRequestMaxBytes, &c.MaxRequestMaxBytes, inPlace),
		plain("spec.deliverSubject", stated(s.DeliverSubject), &c.DeliverSubject, deliveryChange),
		plain("spec.deliverGroup", stated(s.DeliverGroup), &c.DeliverGroup, inPlace),
		plain("spec.flowControl", s.FlowControl, &c.FlowControl, fixed),
		length("spec.heartbeatInterval", s.HeartbeatInterval, &c.IdleHeartbeat, fixed),
		number("spec.rateLimitBps", s.RateLimitBps, &c.RateLimit, inPlace),
		length("spec.inactiveThreshold", s.InactiveThreshold, &c.InactiveThreshold, inPlace),
		plain("spec.replicas", s.Replicas, &c.Replicas, inPlace),
		plain("spec.memStorage", s.MemStorage, &c.MemoryStorage, fixed),
		pause(pausePath, s.PauseUntil, &c.PauseUntil, now),
		choice("spec.priorityPolicy", s.PriorityPolicy, &c.PriorityPolicy, priorityPolicies, inPlace),
		compared("spec.priorityGroups", list(s.PriorityGroups), &c.PriorityGroups, slices.Equal[[]string], inPlace),
		unless(none(s.PinnedTTL) && c.PinnedTTL == usualPinnedTTL, length("spec.pinnedTtl", s.PinnedTTL, &c.PinnedTTL, inPlace)),
		withoutPriority(s, c),
		metadata("spec.metadata", s.Metadata, &c.Metadata),
	}
}

// The defaults of NATS.
const (
	usualAckWait   = 30 * time.Second
	usualPinnedTTL = 2 * time.Minute
)

// deliveryChange: the subject of a push consumer can be changed in place, but push cannot become pull or
// the reverse.
func deliveryChange(have, want string) external.Effect {
	if have == "" || want == "" {
		return external.Recreate
	}
	return external.InPlace
}

// moment is a setting that is a point in time. If want is nil, it is not managed.
func moment(path string, want *metav1.Time, have **time.Time, e effect[*time.Time]) setting {
	if want == nil {
		return setting{}
	}
	same := func(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
	s := compared(path, new(new(want.UTC())), have, same, e)
	for i := range s.differs {
		s.differs[i].Want, s.differs[i].Have = shown(want), nil
		if *have != nil {
			s.differs[i].Have = shown(*have)
		}
	}
	return s
}

func shown(t interface{ Format(string) string }) string { return t.Format(time.RFC3339) }

const pausePath = "spec.pauseUntil"

// pause is like moment, but a time that has passed counts as none, in the spec and in NATS.
func pause(path string, want *metav1.Time, have **time.Time, now time.Time) setting {
	if *have != nil && !(*have).After(now) {
		*have = nil
	}
	if want == nil || want.After(now) {
		return moment(path, want, have, inPlace)
	}
	s := setting{apply: func() { *have = nil }}
	if *have != nil {
		s.differs = external.Changes{{Path: path, Want: shown(want), Have: shown(*have)}}
	}
	return s
}

// withoutPriority removes the settings of a priority policy together with the policy, as NATS requires.
func withoutPriority(s v1alpha1.ConsumerSpec, c *jetstream.ConsumerConfig) setting {
	if s.PriorityPolicy == nil || priorityPolicies[*s.PriorityPolicy] != jetstream.PriorityPolicyNone {
		return setting{}
	}
	return setting{apply: func() { c.PriorityGroups, c.PinnedTTL = nil, 0 }}
}

// backoff is the setting for delays between deliveries. If want is nil, it is not managed.
func backoff(path string, want []v1alpha1.Duration, have *[]time.Duration) setting {
	if want == nil {
		return setting{}
	}
	next := make([]time.Duration, 0, len(want))
	for _, d := range want {
		next = append(next, d.Duration.Duration)
	}
	return compared(path, &next, have, slices.Equal[[]time.Duration], inPlace)
}

// filters is the setting for one filter or several; NATS has a field for each form. An empty string is
// not managed; an empty list means no filter.
func filters(s v1alpha1.ConsumerSpec, c *jetstream.ConsumerConfig) setting {
	path, want := "spec.filterSubjects", s.FilterSubjects
	if one := stated(s.FilterSubject); one != nil {
		path, want = "spec.filterSubject", []string{*one}
	}
	if want == nil {
		return setting{}
	}
	have := append(nonEmpty(c.FilterSubject), c.FilterSubjects...)
	return setting{
		differs: external.Set(path, want, have),
		apply: func() {
			c.FilterSubject, c.FilterSubjects = "", nil
			if len(want) == 1 {
				c.FilterSubject = want[0]
				return
			}
			c.FilterSubjects = slices.Clone(want)
		},
	}
}

func nonEmpty(s string) []string {
	if s == "" {
		return []string{}
	}
	return []string{s}
}

// list is a setting that is a list, compared as a whole. If want is nil, it is not managed.
func list(in []string) *[]string {
	if in == nil {
		return nil
	}
	return &in
}
