package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Consumer is a durable consumer of a JetStream stream.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=consumers,shortName=cons,categories={trimtab,nats}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="STREAM",type=string,JSONPath=`.status.stream`,priority=1
// +kubebuilder:printcolumn:name="CONSUMER",type=string,JSONPath=`.status.name`,priority=1
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.status.mode`,priority=1
// +kubebuilder:printcolumn:name="ACK",type=string,JSONPath=`.status.ackPolicy`,priority=1
// +kubebuilder:validation:XValidation:rule="(has(self.spec.name) ? self.spec.name : self.metadata.name) == (has(oldSelf.spec.name) ? oldSelf.spec.name : oldSelf.metadata.name)",message="a consumer cannot be renamed: create another Consumer and delete this one",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="(has(self.spec.stream) ? self.spec.stream : self.spec.streamRef.name) == (has(oldSelf.spec.stream) ? oldSelf.spec.stream : oldSelf.spec.streamRef.name)",message="a consumer cannot move to another stream: create another Consumer and delete this one",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || !self.metadata.name.contains('.')",message="NATS allows no dots in the name of a consumer; set spec.name to a name without dots",fieldPath=".spec"
type Consumer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConsumerSpec `json:"spec"`
	// +optional
	Status ConsumerStatus `json:"status,omitempty,omitzero"`
}

// TrimtabStatus returns the common status.
func (c *Consumer) TrimtabStatus() *api.Status { return &c.Status.Status }

// TrimtabExternal returns the status of the consumer.
func (c *Consumer) TrimtabExternal() *api.ExternalStatus { return &c.Status.ExternalStatus }

// ConsumerList is a list of consumers.
//
// +kubebuilder:object:root=true
type ConsumerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Consumer `json:"items"`
}

// ConsumerSpec is the desired state of a consumer. Fields that are left out or set to the empty
// string are not managed. An empty list or object, false and 0s mean "none". A consumer with a
// deliverSubject is a push consumer; any other is a pull consumer.
//
// +kubebuilder:validation:XValidation:rule="has(self.stream) || has(self.streamRef)",message="set stream, streamRef, or both"
// +kubebuilder:validation:XValidation:rule="has(self.stream) || !has(self.streamRef) || !self.streamRef.name.contains('.')",message="NATS allows no dots in the name of a stream; set stream to the name that the stream has in NATS"
// +kubebuilder:validation:XValidation:rule="!has(self.filterSubject) || size(self.filterSubject) == 0 || !has(self.filterSubjects) || size(self.filterSubjects) == 0",message="set filterSubject or filterSubjects, not both"
// +kubebuilder:validation:XValidation:rule="has(self.optStartSeq) == (has(self.deliverPolicy) && self.deliverPolicy == 'byStartSequence')",message="set optStartSeq and deliverPolicy: byStartSequence together"
// +kubebuilder:validation:XValidation:rule="has(self.optStartTime) == (has(self.deliverPolicy) && self.deliverPolicy == 'byStartTime')",message="set optStartTime and deliverPolicy: byStartTime together"
// +kubebuilder:validation:XValidation:rule="!(has(self.deliverPolicy) && self.deliverPolicy == 'lastPerSubject') || (has(self.filterSubject) && size(self.filterSubject) > 0) || (has(self.filterSubjects) && size(self.filterSubjects) > 0)",message="deliverPolicy: lastPerSubject needs filterSubject or filterSubjects"
// +kubebuilder:validation:XValidation:rule="!has(self.backoff) || size(self.backoff) == 0 || !has(self.ackWait) || duration(self.ackWait) == duration(self.backoff[0])",message="backoff replaces ackWait: leave ackWait out, or set it to the first backoff"
// +kubebuilder:validation:XValidation:rule="!has(self.backoff) || !has(self.maxDeliver) || self.maxDeliver < 1 || size(self.backoff) <= self.maxDeliver",message="backoff cannot have more steps than maxDeliver"
// +kubebuilder:validation:XValidation:rule="(has(self.deliverSubject) && size(self.deliverSubject) > 0) || !((has(self.deliverGroup) && size(self.deliverGroup) > 0) || (has(self.flowControl) && self.flowControl) || (has(self.heartbeatInterval) && duration(self.heartbeatInterval) > duration('0s')) || (has(self.rateLimitBps) && self.rateLimitBps > 0))",message="deliverGroup, flowControl, heartbeatInterval and rateLimitBps are for push consumers: set deliverSubject as well"
// +kubebuilder:validation:XValidation:rule="!(has(self.deliverSubject) && size(self.deliverSubject) > 0) || !has(self.maxWaiting)",message="maxWaiting is for pull consumers: leave out maxWaiting or deliverSubject"
// +kubebuilder:validation:XValidation:rule="!(has(self.deliverSubject) && size(self.deliverSubject) > 0) || !has(self.priorityPolicy) || self.priorityPolicy == 'none'",message="priority groups are for pull consumers: leave out priorityPolicy or deliverSubject"
// +kubebuilder:validation:XValidation:rule="!(has(self.flowControl) && self.flowControl) || (has(self.heartbeatInterval) && duration(self.heartbeatInterval) > duration('0s'))",message="flowControl needs heartbeatInterval"
// +kubebuilder:validation:XValidation:rule="(has(self.priorityPolicy) && self.priorityPolicy != 'none') == (has(self.priorityGroups) && size(self.priorityGroups) > 0)",message="set priorityPolicy and priorityGroups together"
// +kubebuilder:validation:XValidation:rule="!has(self.pinnedTtl) || duration(self.pinnedTtl) == duration('0s') || (has(self.priorityPolicy) && self.priorityPolicy == 'pinnedClient')",message="pinnedTtl needs priorityPolicy: pinnedClient"
// +kubebuilder:validation:XValidation:rule="!(has(self.ackPolicy) && self.ackPolicy == 'flowControl') || ((has(self.deliverSubject) && size(self.deliverSubject) > 0) && has(self.flowControl) && self.flowControl && duration(self.heartbeatInterval) == duration('1s') && has(self.maxAckPending) && self.maxAckPending > 0 && !has(self.ackWait) && !has(self.backoff))",message="ackPolicy: flowControl needs deliverSubject, flowControl, heartbeatInterval: 1s and a maxAckPending above 0, and allows no ackWait or backoff"
// +kubebuilder:validation:XValidation:rule="!(has(self.ackPolicy) && self.ackPolicy == 'none' && (has(self.deliverSubject) && size(self.deliverSubject) > 0)) || !has(self.maxAckPending) || self.maxAckPending < 1",message="a push consumer with ackPolicy: none cannot have a maxAckPending"
type ConsumerSpec struct {
	// Name of the consumer in NATS. The default is the name of the object. It cannot be
	// changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Name string `json:"name,omitempty"`

	// Name in NATS of the stream to consume. The default is the name in streamRef. It cannot
	// be changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Stream string `json:"stream,omitempty"`

	// The Stream object to wait for: the consumer is created once it is Ready. If that
	// object has a spec.name, set stream to the same name.
	// +optional
	StreamRef *StreamRef `json:"streamRef,omitempty"`

	// Whether the consumer may be deleted, which loses its position in the stream, and
	// created again when a change requires it. With Refused, the default, such a change is
	// reported as impossible.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// Description of the consumer.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description *string `json:"description,omitempty"`

	// Where in the stream the consumer starts: all, last, new, byStartSequence, byStartTime
	// or lastPerSubject. A change requires re-creation.
	// +optional
	// +kubebuilder:validation:Enum=all;last;new;byStartSequence;byStartTime;lastPerSubject
	DeliverPolicy *string `json:"deliverPolicy,omitempty"`

	// Sequence number of the first message, with deliverPolicy: byStartSequence. A change
	// requires re-creation.
	// +optional
	// +kubebuilder:validation:Minimum=1
	OptStartSeq *int64 `json:"optStartSeq,omitempty"`

	// Time of the first message, with deliverPolicy: byStartTime. A change requires
	// re-creation.
	// +optional
	OptStartTime *metav1.Time `json:"optStartTime,omitempty"`

	// Which acknowledgements the consumer expects: one for each message (explicit), one that
	// covers all messages up to it (all), none (none), or those of flow control
	// (flowControl). A change requires re-creation.
	// +optional
	// +kubebuilder:validation:Enum=none;all;explicit;flowControl
	AckPolicy *string `json:"ackPolicy,omitempty"`

	// How long NATS waits for an acknowledgement before it delivers a message again. 0s
	// means the default of NATS.
	// +optional
	AckWait *Duration `json:"ackWait,omitempty"`

	// How often a message is delivered at most; -1 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxDeliver *int `json:"maxDeliver,omitempty"`

	// Delays between the deliveries of a message, used instead of ackWait. The last one
	// applies to all further deliveries. There cannot be more delays than maxDeliver.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Backoff []Duration `json:"backoff,omitempty"`

	// Deliver only messages on this subject; wildcards are allowed. To remove a filter, set
	// filterSubjects: [].
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S*$`
	FilterSubject *string `json:"filterSubject,omitempty"`

	// Deliver only messages on these subjects, which must not overlap.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\S+$`
	FilterSubjects []string `json:"filterSubjects,omitempty"`

	// How fast stored messages are delivered: as fast as possible (instant), or at the rate
	// at which they were stored (original). A change requires re-creation.
	// +optional
	// +kubebuilder:validation:Enum=instant;original
	ReplayPolicy *string `json:"replayPolicy,omitempty"`

	// Percentage of acknowledgements that NATS samples for observability, for example 30%.
	// +optional
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:Pattern=`^([0-9]{1,2}%?|100%?)?$`
	SampleFreq *string `json:"sampleFreq,omitempty"`

	// Maximum number of waiting pull requests. A change requires re-creation.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxWaiting *int `json:"maxWaiting,omitempty"`

	// Maximum number of messages that are delivered and not yet acknowledged; -1 means no
	// limit.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:XValidation:rule="self != 0",message="use -1 for no limit, or leave it out for the server's default"
	MaxAckPending *int `json:"maxAckPending,omitempty"`

	// Deliver only the headers of messages.
	// +optional
	HeadersOnly *bool `json:"headersOnly,omitempty"`

	// Maximum number of messages that one pull request may ask for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRequestBatch *int `json:"maxRequestBatch,omitempty"`

	// Maximum time that one pull request may wait.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1ms')",message="use 0s for none, or at least 1ms"
	MaxRequestExpires *Duration `json:"maxRequestExpires,omitempty"`

	// Maximum number of bytes that one pull request may ask for.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRequestMaxBytes *int `json:"maxRequestMaxBytes,omitempty"`

	// Subject to which a push consumer delivers. It can be changed in place while nothing
	// listens on the old subject; a change from or to a pull consumer requires re-creation.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s*>]*$`
	DeliverSubject *string `json:"deliverSubject,omitempty"`

	// Queue group whose members share the messages of a push consumer.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	DeliverGroup *string `json:"deliverGroup,omitempty"`

	// Let a push consumer wait for slow receivers. Requires heartbeatInterval. A change
	// requires re-creation.
	// +optional
	FlowControl *bool `json:"flowControl,omitempty"`

	// How often an idle push consumer sends a heartbeat. A change requires re-creation.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for none, or at least 100ms"
	HeartbeatInterval *Duration `json:"heartbeatInterval,omitempty"`

	// Maximum rate at which a push consumer delivers, in bits per second.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RateLimitBps *int64 `json:"rateLimitBps,omitempty"`

	// How long the consumer may be unused before NATS removes it. The operator then
	// creates it again, without its position.
	// +optional
	InactiveThreshold *Duration `json:"inactiveThreshold,omitempty"`

	// On how many servers the consumer's state is stored; 0 means on as many as the stream.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	Replicas *int `json:"replicas,omitempty"`

	// Keep the consumer's state in memory, whatever the stream uses. A change requires
	// re-creation.
	// +optional
	MemStorage *bool `json:"memStorage,omitempty"`

	// Deliver nothing until this time.
	// +optional
	PauseUntil *metav1.Time `json:"pauseUntil,omitempty"`

	// How the pull requests of a group share messages: pinnedClient serves one client at a
	// time; overflow serves a request only when the backlog is as large as the request says;
	// prioritized serves by priority.
	// +optional
	// +kubebuilder:validation:Enum=none;pinnedClient;overflow;prioritized
	PriorityPolicy *string `json:"priorityPolicy,omitempty"`

	// Groups that pull requests may name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[a-zA-Z0-9/_=-]{1,16}$`
	PriorityGroups []string `json:"priorityGroups,omitempty"`

	// How long a pinned client may be silent before another one takes its place. 0s means
	// the default of NATS.
	// +optional
	PinnedTTL *Duration `json:"pinnedTtl,omitempty"`

	// Metadata of the consumer. If set, it is managed as a whole, except for the keys that
	// NATS and trimtab use.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('_nats.') && !k.startsWith('trimtab-'))",message="keys that start with _nats. or trimtab- are reserved"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// StreamRef names a Stream object.
type StreamRef struct {
	// Name of the Stream object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Stream object. The default is the namespace of the consumer.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ConsumerStatus is the last observation of the consumer.
type ConsumerStatus struct {
	api.ExternalStatus `json:",inline"`

	// Name of the stream in NATS.
	// +optional
	Stream string `json:"stream,omitempty"`
	// Name of the consumer in NATS.
	// +optional
	Name string `json:"name,omitempty"`
	// Mode is pull or push.
	// +optional
	Mode string `json:"mode,omitempty"`
	// Which acknowledgements the consumer expects.
	// +optional
	AckPolicy string `json:"ackPolicy,omitempty"`
	// When NATS created the consumer.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}
