package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RecreatePolicy says whether a resource may be deleted and created again when a change
// requires it.
//
// +kubebuilder:validation:Enum=Refused;Allowed
type RecreatePolicy string

const (
	// RecreateRefused keeps the resource as it is and reports that the change is impossible.
	RecreateRefused RecreatePolicy = "Refused"
	// RecreateAllowed deletes the resource with everything in it and creates it again.
	RecreateAllowed RecreatePolicy = "Allowed"
)

// Storage is where messages are kept.
//
// +kubebuilder:validation:Enum=file;memory
type Storage string

// Duration is a length of time in Go's notation, for example 1h30m or 250ms.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="the duration is too long"
type Duration struct{ metav1.Duration }

// Placement restricts the servers of a NATS cluster on which a stream or bucket is stored.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cluster) || size(self.cluster) > 0 || (has(self.tags) && size(self.tags) > 0)",message="an empty cluster name selects nothing; for any server, leave placement empty ({})"
type Placement struct {
	// Name of the NATS cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Cluster string `json:"cluster,omitempty"`

	// Tags that a server must have. It must have all of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	Tags []string `json:"tags,omitempty"`
}

// StreamSource is another stream to copy messages from.
//
// +kubebuilder:validation:XValidation:rule="!has(self.optStartSeq) || !has(self.optStartTime)",message="set optStartSeq or optStartTime, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.filterSubject) || !has(self.subjectTransforms) || size(self.subjectTransforms) == 0",message="set filterSubject or subjectTransforms, not both: the source of a transform is already a filter"
// +kubebuilder:validation:XValidation:rule="!has(self.externalDeliverPrefix) || has(self.externalApiPrefix)",message="externalDeliverPrefix needs externalApiPrefix"
// +kubebuilder:validation:XValidation:rule="!has(self.consumer) || !(has(self.optStartSeq) || has(self.optStartTime) || has(self.filterSubject))",message="the consumer decides where to start and what to filter: with consumer, leave out optStartSeq, optStartTime and filterSubject"
// +kubebuilder:validation:XValidation:rule="has(self.name) || !(has(self.optStartSeq) || has(self.optStartTime) || has(self.filterSubject) || has(self.subjectTransforms) || has(self.externalApiPrefix) || has(self.consumer))",message="name is required"
type StreamSource struct {
	// Name of the stream to copy from.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Name string `json:"name,omitempty"`

	// Sequence number of the first message to copy.
	// +optional
	// +kubebuilder:validation:Minimum=1
	OptStartSeq *int64 `json:"optStartSeq,omitempty"`

	// Time of the first message to copy.
	// +optional
	OptStartTime *metav1.Time `json:"optStartTime,omitempty"`

	// Only messages on this subject are copied; wildcards are allowed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	FilterSubject string `json:"filterSubject,omitempty"`

	// Only messages that match one of the transforms are copied, under their new subjects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SubjectTransforms []SubjectTransform `json:"subjectTransforms,omitempty"`

	// Prefix of the JetStream API of the other account or domain in which the stream is
	// stored, for example $JS.hub.API.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ExternalAPIPrefix string `json:"externalApiPrefix,omitempty"`

	// Prefix of the subjects to which that account or domain delivers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	ExternalDeliverPrefix string `json:"externalDeliverPrefix,omitempty"`

	// A durable push consumer of that stream to copy through, instead of one that the
	// server creates. Its ack policy must be flowControl.
	// +optional
	Consumer *SourceConsumer `json:"consumer,omitempty"`
}

// SourceConsumer names a durable consumer to copy through.
type SourceConsumer struct {
	// Name of the consumer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Name string `json:"name"`

	// Subject to which it delivers, without wildcards.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	DeliverSubject string `json:"deliverSubject"`
}

// SubjectTransform maps subjects that match a pattern to others.
type SubjectTransform struct {
	// Pattern that a subject must match. Empty means every subject.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Source string `json:"source,omitempty"`

	// The new subject. {{wildcard(1)}} and similar functions insert parts of the old one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Dest string `json:"dest,omitempty"`
}

// Republish publishes stored messages again under another subject.
//
// +kubebuilder:validation:XValidation:rule="has(self.destination) || !(has(self.source) || has(self.headersOnly))",message="destination is required; leave republish empty ({}) to switch it off"
type Republish struct {
	// Pattern of the subjects to publish again. If it is left out, all are.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Source string `json:"source,omitempty"`

	// Subject to send them to. {{wildcard(1)}} and similar functions insert parts of the
	// old one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Destination string `json:"destination,omitempty"`

	// Send headers without the message's body.
	// +optional
	HeadersOnly bool `json:"headersOnly,omitempty"`
}
