package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Stream is a JetStream stream.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=streams,shortName=strm,categories={trimtab,nats}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="STREAM",type=string,JSONPath=`.status.name`,priority=1
// +kubebuilder:printcolumn:name="SUBJECTS",type=string,JSONPath=`.status.subjects`,priority=1
// +kubebuilder:printcolumn:name="STORAGE",type=string,JSONPath=`.status.storage`,priority=1
// +kubebuilder:printcolumn:name="RETENTION",type=string,JSONPath=`.status.retention`,priority=1
// +kubebuilder:printcolumn:name="REPLICAS",type=integer,JSONPath=`.status.replicas`,priority=1
// +kubebuilder:validation:XValidation:rule="(has(self.spec.name) ? self.spec.name : self.metadata.name) == (has(oldSelf.spec.name) ? oldSelf.spec.name : oldSelf.metadata.name)",message="a stream cannot be renamed: create another Stream and delete this one",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || !self.metadata.name.contains('.')",message="NATS allows no dots in the name of a stream; set spec.name to a name without dots",fieldPath=".spec"
type Stream struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec StreamSpec `json:"spec,omitempty,omitzero"`
	// +optional
	Status StreamStatus `json:"status,omitempty,omitzero"`
}

// TrimtabStatus returns the common status.
func (s *Stream) TrimtabStatus() *api.Status { return &s.Status.Status }

// TrimtabExternal returns the status of the stream.
func (s *Stream) TrimtabExternal() *api.ExternalStatus { return &s.Status.ExternalStatus }

// StreamList is a list of streams.
//
// +kubebuilder:object:root=true
type StreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stream `json:"items"`
}

// StreamSpec is the desired state of a stream. Fields that are left out or set to the empty
// string are not managed. An empty list or object, false and 0s mean "none". For numeric
// limits, -1 and 0 mean "no limit".
//
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || ((!has(self.subjects) || size(self.subjects) == 0) && (!has(self.sources) || size(self.sources) == 0))",message="a mirror has no subjects and no sources of its own"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !has(self.firstSequence) || self.firstSequence == 0",message="a mirror takes its sequence numbers from the stream it copies: leave firstSequence out"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !((has(self.allowMsgCounter) && self.allowMsgCounter) || (has(self.allowAtomicPublish) && self.allowAtomicPublish) || (has(self.allowBatchPublish) && self.allowBatchPublish) || (has(self.allowMsgSchedules) && self.allowMsgSchedules))",message="a mirror accepts no messages: it cannot allow counters, batches or schedules"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !has(self.subjectDeleteMarkerTtl) || duration(self.subjectDeleteMarkerTtl) == duration('0s')",message="a mirror cannot leave delete markers"
// +kubebuilder:validation:XValidation:rule="!has(self.discardPerSubject) || !self.discardPerSubject || (has(self.discard) && self.discard == 'new' && has(self.maxMsgsPerSubject) && self.maxMsgsPerSubject > 0)",message="discardPerSubject needs discard: new and a maxMsgsPerSubject above 0"
// +kubebuilder:validation:XValidation:rule="!(has(self.denyPurge) && self.denyPurge && has(self.allowRollup) && self.allowRollup)",message="a rollup is a purge: set denyPurge or allowRollup, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.maxAge) || !has(self.duplicateWindow) || duration(self.maxAge) == duration('0s') || duration(self.duplicateWindow) <= duration(self.maxAge)",message="duplicateWindow cannot be longer than maxAge"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMsgCounter) && self.allowMsgCounter) || !((has(self.discard) && self.discard == 'new') || (has(self.allowMsgTtl) && self.allowMsgTtl) || (has(self.allowMsgSchedules) && self.allowMsgSchedules) || (has(self.retention) && self.retention != 'limits'))",message="a stream with allowMsgCounter cannot use discard: new, allowMsgTtl, allowMsgSchedules or a retention other than limits"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMsgSchedules) && self.allowMsgSchedules) || !((has(self.discard) && self.discard == 'new') || (has(self.sources) && size(self.sources) > 0))",message="a stream with allowMsgSchedules cannot use discard: new or sources"
// +kubebuilder:validation:XValidation:rule="!((has(self.allowMsgSchedules) && self.allowMsgSchedules) || (has(self.subjectDeleteMarkerTtl) && duration(self.subjectDeleteMarkerTtl) > duration('0s'))) || !((has(self.allowRollup) && !self.allowRollup) || (has(self.denyPurge) && self.denyPurge))",message="allowMsgSchedules and subjectDeleteMarkerTtl need rollups: allowRollup cannot be false, and denyPurge cannot be true"
// +kubebuilder:validation:XValidation:rule="!(has(self.subjectDeleteMarkerTtl) && duration(self.subjectDeleteMarkerTtl) > duration('0s')) || !has(self.allowMsgTtl) || self.allowMsgTtl",message="subjectDeleteMarkerTtl needs message TTLs: allowMsgTtl cannot be false"
// +kubebuilder:validation:XValidation:rule="!(has(self.persistMode) && self.persistMode == 'async') || !((has(self.storage) && self.storage != 'file') || (has(self.replicas) && self.replicas > 1) || (has(self.allowAtomicPublish) && self.allowAtomicPublish))",message="persistMode: async needs storage: file, one replica and no atomic batches"
type StreamSpec struct {
	// Name of the stream in NATS. The default is the name of the object. It cannot be
	// changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Name string `json:"name,omitempty"`

	// Whether the stream may be deleted with all its messages and created again when a
	// change requires it. With Refused, the default, such a change is reported as
	// impossible.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// Description of the stream.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description *string `json:"description,omitempty"`

	// Subjects whose messages the stream stores; wildcards are allowed. If they are left out
	// or empty, a new stream listens on its own name, unless it has a mirror or sources.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\S+$`
	Subjects []string `json:"subjects,omitempty"`

	// When messages are removed: when a limit is reached (limits), when every consumer has
	// acknowledged them (interest), or when one has (workqueue). A change from or to
	// workqueue requires re-creation.
	// +optional
	// +kubebuilder:validation:Enum=limits;interest;workqueue
	Retention *string `json:"retention,omitempty"`

	// Maximum number of consumers.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxConsumers *int `json:"maxConsumers,omitempty"`

	// Maximum number of messages.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgs *int64 `json:"maxMsgs,omitempty"`

	// Maximum size of all messages, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// Maximum number of messages per subject.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgsPerSubject *int64 `json:"maxMsgsPerSubject,omitempty"`

	// Maximum size of one message, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgSize *int32 `json:"maxMsgSize,omitempty"`

	// How long a message is kept. 0s means forever.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for none, or at least 100ms"
	MaxAge *Duration `json:"maxAge,omitempty"`

	// What happens when a limit is reached: old messages are removed (old), or new ones are
	// refused (new).
	// +optional
	// +kubebuilder:validation:Enum=old;new
	Discard *string `json:"discard,omitempty"`

	// Also refuse new messages when the limit per subject is reached. Requires discard: new
	// and maxMsgsPerSubject.
	// +optional
	DiscardPerSubject *bool `json:"discardPerSubject,omitempty"`

	// Where messages are kept: file or memory. A change requires re-creation.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// On how many servers of a NATS cluster the stream is stored.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas *int `json:"replicas,omitempty"`

	// Do not acknowledge published messages.
	// +optional
	NoAck *bool `json:"noAck,omitempty"`

	// How long a message with the same Nats-Msg-Id header counts as a duplicate. 0s means
	// the default of NATS.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for the default of NATS, or at least 100ms"
	DuplicateWindow *Duration `json:"duplicateWindow,omitempty"`

	// Which servers of a NATS cluster may store the stream; {} means any.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// The stream to copy: this stream is its mirror. {} turns a mirror into an ordinary
	// stream in place; any other change requires re-creation.
	// +optional
	Mirror *StreamSource `json:"mirror,omitempty"`

	// Streams to copy messages from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name))",message="every source needs a name"
	Sources []StreamSource `json:"sources,omitempty"`

	// Seal the stream: no message can be added or removed any more. Only re-creation unseals
	// it. NATS then clears maxAge and allowRollup and sets discard, denyDelete and denyPurge
	// itself; their values in the spec no longer have an effect.
	// +optional
	Sealed *bool `json:"sealed,omitempty"`

	// Refuse to delete single messages. Only re-creation can revoke this.
	// +optional
	DenyDelete *bool `json:"denyDelete,omitempty"`

	// Refuse to purge the stream. Only re-creation can revoke this.
	// +optional
	DenyPurge *bool `json:"denyPurge,omitempty"`

	// Allow messages whose Nats-Rollup header makes them replace all earlier ones.
	// +optional
	AllowRollup *bool `json:"allowRollup,omitempty"`

	// Compression of messages on disk.
	// +optional
	// +kubebuilder:validation:Enum=none;s2
	Compression *string `json:"compression,omitempty"`

	// Sequence number of the stream's first message. It is used only at creation; a change
	// requires re-creation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FirstSequence *int64 `json:"firstSequence,omitempty"`

	// How the subjects of incoming messages are changed before they are stored; {} means
	// that they are not.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.dest) && size(self.dest) > 0) || !(has(self.dest) || has(self.source))",message="dest is required; to switch the transform off, leave subjectTransform empty ({})"
	SubjectTransform *SubjectTransform `json:"subjectTransform,omitempty"`

	// Publish stored messages again under another subject; {} means none.
	// +optional
	Republish *Republish `json:"republish,omitempty"`

	// Let every server that stores the stream answer requests for single messages.
	// +optional
	AllowDirect *bool `json:"allowDirect,omitempty"`

	// Let a mirror answer such requests for the stream that it copies. For a mirror of a
	// stream in the same account, NATS uses that stream's allowDirect whatever is set here.
	// +optional
	MirrorDirect *bool `json:"mirrorDirect,omitempty"`

	// Limits for consumers of the stream, which are also their defaults; {} means none.
	// +optional
	ConsumerLimits *ConsumerLimits `json:"consumerLimits,omitempty"`

	// Allow a time to live per message, set by the Nats-TTL header. Only re-creation can
	// revoke this.
	// +optional
	AllowMsgTTL *bool `json:"allowMsgTtl,omitempty"`

	// When the last message of a subject expires, leave a marker for this long. NATS then
	// allows message TTLs and rollups and no longer denies purges.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1s')",message="use 0s for none, or at least 1s"
	SubjectDeleteMarkerTTL *Duration `json:"subjectDeleteMarkerTtl,omitempty"`

	// Use the stream as a counter: each message adds to a number per subject. A change
	// requires re-creation.
	// +optional
	AllowMsgCounter *bool `json:"allowMsgCounter,omitempty"`

	// Allow atomic batches: either all messages of a batch are stored or none.
	// +optional
	AllowAtomicPublish *bool `json:"allowAtomicPublish,omitempty"`

	// Allow batches of messages that are acknowledged together.
	// +optional
	AllowBatchPublish *bool `json:"allowBatchPublish,omitempty"`

	// Allow messages that are published on a schedule. NATS then allows rollups and no
	// longer denies purges. Only re-creation can revoke this.
	// +optional
	AllowMsgSchedules *bool `json:"allowMsgSchedules,omitempty"`

	// When a message counts as stored: default flushes it to disk first, async may lose the
	// last messages when the server crashes. A change requires re-creation.
	// +optional
	// +kubebuilder:validation:Enum=default;async
	PersistMode *string `json:"persistMode,omitempty"`

	// Metadata of the stream. If set, it is managed as a whole, except for the keys that
	// NATS and trimtab use.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('_nats.') && !k.startsWith('trimtab-'))",message="keys that start with _nats. or trimtab- are reserved"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ConsumerLimits are limits and defaults for consumers of a stream.
type ConsumerLimits struct {
	// How long a consumer may be unused before NATS removes it.
	// +optional
	InactiveThreshold *Duration `json:"inactiveThreshold,omitempty"`

	// Maximum number of messages that a consumer has delivered and that are not yet
	// acknowledged.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxAckPending *int `json:"maxAckPending,omitempty"`
}

// StreamStatus is the last observation of the stream.
type StreamStatus struct {
	api.ExternalStatus `json:",inline"`

	// Name of the stream in NATS.
	// +optional
	Name string `json:"name,omitempty"`
	// Subjects that the stream listens on, separated by commas.
	// +optional
	Subjects string `json:"subjects,omitempty"`
	// Where messages are kept.
	// +optional
	Storage string `json:"storage,omitempty"`
	// When messages are removed.
	// +optional
	Retention string `json:"retention,omitempty"`
	// On how many servers the stream is stored.
	// +optional
	Replicas int `json:"replicas,omitempty"`
	// When NATS created the stream.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}
