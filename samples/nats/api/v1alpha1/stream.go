package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Stream is one JetStream stream.
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
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || !self.metadata.name.contains('.')",message="NATS allows no dots in a stream's name; set spec.name to one without",fieldPath=".spec"
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

// TrimtabExternal returns the status of the stream behind the object.
func (s *Stream) TrimtabExternal() *api.ExternalStatus { return &s.Status.ExternalStatus }

// StreamList is a list of streams.
//
// +kubebuilder:object:root=true
type StreamList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stream `json:"items"`
}

// StreamSpec asks for a stream. What is left out is not managed, nor is an empty text; an empty
// list or object, false and 0s ask for "none". -1 and 0 mean "no limit" where a limit is a number.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || ((!has(self.subjects) || size(self.subjects) == 0) && (!has(self.sources) || size(self.sources) == 0))",message="a mirror has no subjects and no sources of its own"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !has(self.firstSequence) || self.firstSequence == 0",message="a mirror takes its sequence numbers from the stream it copies; leave firstSequence out"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !((has(self.allowMsgCounter) && self.allowMsgCounter) || (has(self.allowAtomicPublish) && self.allowAtomicPublish) || (has(self.allowBatchPublish) && self.allowBatchPublish) || (has(self.allowMsgSchedules) && self.allowMsgSchedules))",message="nobody publishes to a mirror: it cannot allow counters, batches or schedules"
// +kubebuilder:validation:XValidation:rule="!(has(self.mirror) && has(self.mirror.name)) || !has(self.subjectDeleteMarkerTtl) || duration(self.subjectDeleteMarkerTtl) == duration('0s')",message="a mirror cannot leave delete markers"
// +kubebuilder:validation:XValidation:rule="!has(self.discardPerSubject) || !self.discardPerSubject || (has(self.discard) && self.discard == 'new' && has(self.maxMsgsPerSubject) && self.maxMsgsPerSubject > 0)",message="discardPerSubject needs discard: new and a maxMsgsPerSubject above 0"
// +kubebuilder:validation:XValidation:rule="!(has(self.denyPurge) && self.denyPurge && has(self.allowRollup) && self.allowRollup)",message="a rollup purges: denyPurge and allowRollup exclude each other"
// +kubebuilder:validation:XValidation:rule="!has(self.maxAge) || !has(self.duplicateWindow) || duration(self.maxAge) == duration('0s') || duration(self.duplicateWindow) <= duration(self.maxAge)",message="duplicateWindow cannot be longer than maxAge"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMsgCounter) && self.allowMsgCounter) || !((has(self.discard) && self.discard == 'new') || (has(self.allowMsgTtl) && self.allowMsgTtl) || (has(self.allowMsgSchedules) && self.allowMsgSchedules) || (has(self.retention) && self.retention != 'limits'))",message="a stream with allowMsgCounter cannot use discard: new, allowMsgTtl, allowMsgSchedules or another retention than limits"
// +kubebuilder:validation:XValidation:rule="!(has(self.allowMsgSchedules) && self.allowMsgSchedules) || !((has(self.discard) && self.discard == 'new') || (has(self.sources) && size(self.sources) > 0))",message="a stream with allowMsgSchedules cannot use discard: new or sources"
// +kubebuilder:validation:XValidation:rule="!((has(self.allowMsgSchedules) && self.allowMsgSchedules) || (has(self.subjectDeleteMarkerTtl) && duration(self.subjectDeleteMarkerTtl) > duration('0s'))) || !((has(self.allowRollup) && !self.allowRollup) || (has(self.denyPurge) && self.denyPurge))",message="allowMsgSchedules and subjectDeleteMarkerTtl need rollups: allowRollup cannot be false nor denyPurge true"
// +kubebuilder:validation:XValidation:rule="!(has(self.subjectDeleteMarkerTtl) && duration(self.subjectDeleteMarkerTtl) > duration('0s')) || !has(self.allowMsgTtl) || self.allowMsgTtl",message="subjectDeleteMarkerTtl needs message TTLs: allowMsgTtl cannot be false"
// +kubebuilder:validation:XValidation:rule="!(has(self.persistMode) && self.persistMode == 'async') || !((has(self.storage) && self.storage != 'file') || (has(self.replicas) && self.replicas > 1) || (has(self.allowAtomicPublish) && self.allowAtomicPublish))",message="persistMode: async needs storage: file, one replica and no atomic batches"
type StreamSpec struct {
	// Name of the stream in NATS. Left out means the object's own name. It cannot be
	// changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[^\s.*>/\\]+$`
	Name string `json:"name,omitempty"`

	// Whether the stream may be deleted, with all its messages, and created anew when a
	// change needs it. Refused, the default, reports such a change as impossible.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// What the stream is for.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description *string `json:"description,omitempty"`

	// Subjects whose messages the stream keeps; wildcards are allowed. Left out, a new
	// stream listens on its own name, unless it has a mirror or sources; so does one with [].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^\S+$`
	Subjects []string `json:"subjects,omitempty"`

	// When messages go: at the limits, when every consumer has acknowledged them
	// (interest), or when one has (workqueue). Between limits and interest it changes in
	// place; from or to workqueue the stream must be re-created.
	// +optional
	// +kubebuilder:validation:Enum=limits;interest;workqueue
	Retention *string `json:"retention,omitempty"`

	// How many consumers the stream may have.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxConsumers *int `json:"maxConsumers,omitempty"`

	// How many messages the stream keeps.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgs *int64 `json:"maxMsgs,omitempty"`

	// How many bytes of messages the stream keeps.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// How many messages the stream keeps per subject.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgsPerSubject *int64 `json:"maxMsgsPerSubject,omitempty"`

	// The largest message, in bytes, that the stream takes.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxMsgSize *int32 `json:"maxMsgSize,omitempty"`

	// How long the stream keeps a message. 0s means for ever.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for none, or at least 100ms"
	MaxAge *Duration `json:"maxAge,omitempty"`

	// What happens at a limit: old messages go, or new ones are refused.
	// +optional
	// +kubebuilder:validation:Enum=old;new
	Discard *string `json:"discard,omitempty"`

	// Refuse new messages also at the limit per subject. Needs discard: new and
	// maxMsgsPerSubject.
	// +optional
	DiscardPerSubject *bool `json:"discardPerSubject,omitempty"`

	// Where messages are kept: file or memory. A change needs re-creation.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// On how many servers of a NATS cluster the stream lives.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas *int `json:"replicas,omitempty"`

	// Do not answer publishers.
	// +optional
	NoAck *bool `json:"noAck,omitempty"`

	// For how long a message with the same Nats-Msg-Id header counts as a duplicate; 0s means
	// NATS's default.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for NATS's default, or at least 100ms"
	DuplicateWindow *Duration `json:"duplicateWindow,omitempty"`

	// Which servers of a NATS cluster the stream may live on; {} means any.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// The stream is a copy of another. {} turns a mirror into a stream of its own, which
	// happens in place; every other change of a mirror needs re-creation.
	// +optional
	Mirror *StreamSource `json:"mirror,omitempty"`

	// Streams to copy messages from.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name))",message="every source needs a name"
	Sources []StreamSource `json:"sources,omitempty"`

	// Close the stream for good: no message comes in or goes out. Only re-creation opens
	// it again. NATS then drops maxAge and allowRollup and sets discard, denyDelete and
	// denyPurge itself; what the spec says about them no longer counts.
	// +optional
	Sealed *bool `json:"sealed,omitempty"`

	// Refuse to delete single messages. Only re-creation takes it back.
	// +optional
	DenyDelete *bool `json:"denyDelete,omitempty"`

	// Refuse to purge the stream. Only re-creation takes it back.
	// +optional
	DenyPurge *bool `json:"denyPurge,omitempty"`

	// Allow messages that replace all earlier ones through the Nats-Rollup header.
	// +optional
	AllowRollup *bool `json:"allowRollup,omitempty"`

	// How messages on disk are compressed.
	// +optional
	// +kubebuilder:validation:Enum=none;s2
	Compression *string `json:"compression,omitempty"`

	// Sequence number of the stream's first message. It counts at creation alone; a
	// change needs re-creation.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FirstSequence *int64 `json:"firstSequence,omitempty"`

	// How subjects of incoming messages change before they are stored; {} means they stay.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.dest) && size(self.dest) > 0) || !(has(self.dest) || has(self.source))",message="dest is required; leave subjectTransform empty ({}) to switch it off"
	SubjectTransform *SubjectTransform `json:"subjectTransform,omitempty"`

	// Send stored messages on under another subject; {} means none.
	// +optional
	Republish *Republish `json:"republish,omitempty"`

	// Let every server that holds the stream answer reads of single messages.
	// +optional
	AllowDirect *bool `json:"allowDirect,omitempty"`

	// Let a mirror answer such reads for the stream that it copies. For a mirror within
	// one account NATS takes the value from that stream's allowDirect, whatever is set here.
	// +optional
	MirrorDirect *bool `json:"mirrorDirect,omitempty"`

	// What consumers of the stream may ask for, and get when they ask for nothing; {}
	// means no limits.
	// +optional
	ConsumerLimits *ConsumerLimits `json:"consumerLimits,omitempty"`

	// Allow a time to live per message through the Nats-TTL header. Only re-creation
	// takes it back.
	// +optional
	AllowMsgTTL *bool `json:"allowMsgTtl,omitempty"`

	// Leave a marker where the last message of a subject went by age, for this long. NATS
	// then allows message TTLs and rollups and no longer denies purges.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1s')",message="use 0s for none, or at least 1s"
	SubjectDeleteMarkerTTL *Duration `json:"subjectDeleteMarkerTtl,omitempty"`

	// The stream counts: each message adds to a number per subject. A change needs
	// re-creation.
	// +optional
	AllowMsgCounter *bool `json:"allowMsgCounter,omitempty"`

	// Allow batches of messages that are stored all or none.
	// +optional
	AllowAtomicPublish *bool `json:"allowAtomicPublish,omitempty"`

	// Allow batches of messages with one answer for many.
	// +optional
	AllowBatchPublish *bool `json:"allowBatchPublish,omitempty"`

	// Allow messages that are sent on by a schedule. NATS then allows rollups and no
	// longer denies purges. Only re-creation takes it back.
	// +optional
	AllowMsgSchedules *bool `json:"allowMsgSchedules,omitempty"`

	// When a message counts as stored: default flushes first, async may lose the last ones
	// when the server dies. A change needs re-creation.
	// +optional
	// +kubebuilder:validation:Enum=default;async
	PersistMode *string `json:"persistMode,omitempty"`

	// Free labels on the stream. When set they are managed as a whole, except those of
	// NATS itself and of trimtab.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('_nats.') && !k.startsWith('trimtab-'))",message="keys that start with _nats. or trimtab- are reserved"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ConsumerLimits are limits and defaults for the consumers of a stream.
type ConsumerLimits struct {
	// How long a consumer may be unused before NATS removes it.
	// +optional
	InactiveThreshold *Duration `json:"inactiveThreshold,omitempty"`

	// How many messages a consumer may have out without an acknowledgement.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxAckPending *int `json:"maxAckPending,omitempty"`
}

// StreamStatus is what was last seen of the stream.
type StreamStatus struct {
	api.ExternalStatus `json:",inline"`

	// Name of the stream in NATS.
	// +optional
	Name string `json:"name,omitempty"`
	// Subjects that it listens on, with commas between.
	// +optional
	Subjects string `json:"subjects,omitempty"`
	// Where its messages are kept.
	// +optional
	Storage string `json:"storage,omitempty"`
	// When its messages go.
	// +optional
	Retention string `json:"retention,omitempty"`
	// On how many servers it lives.
	// +optional
	Replicas int `json:"replicas,omitempty"`
	// When NATS created it.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}
