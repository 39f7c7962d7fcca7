package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// KeyValue is a bucket of the NATS key-value store.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=keyvalues,shortName=kv,categories={trimtab,nats}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="BUCKET",type=string,JSONPath=`.status.bucket`,priority=1
// +kubebuilder:printcolumn:name="HISTORY",type=integer,JSONPath=`.status.history`,priority=1
// +kubebuilder:printcolumn:name="STORAGE",type=string,JSONPath=`.status.storage`,priority=1
// +kubebuilder:printcolumn:name="REPLICAS",type=integer,JSONPath=`.status.replicas`,priority=1
// +kubebuilder:validation:XValidation:rule="(has(self.spec.bucket) ? self.spec.bucket : self.metadata.name) == (has(oldSelf.spec.bucket) ? oldSelf.spec.bucket : oldSelf.metadata.name)",message="a bucket cannot be renamed: create another KeyValue and delete this one",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="has(self.spec.bucket) || !self.metadata.name.contains('.')",message="NATS allows no dots in the name of a bucket; set spec.bucket to a name without dots",fieldPath=".spec"
type KeyValue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Spec KeyValueSpec `json:"spec,omitempty,omitzero"`
	// +optional
	Status KeyValueStatus `json:"status,omitempty,omitzero"`
}

// TrimtabStatus returns the common status.
func (k *KeyValue) TrimtabStatus() *api.Status { return &k.Status.Status }

// TrimtabExternal returns the status of the bucket.
func (k *KeyValue) TrimtabExternal() *api.ExternalStatus { return &k.Status.ExternalStatus }

// KeyValueList is a list of buckets.
//
// +kubebuilder:object:root=true
type KeyValueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KeyValue `json:"items"`
}

// KeyValueSpec is the desired state of a bucket. Fields that are left out or set to the empty
// string are not managed. An empty list or object, false and 0s mean "none". For numeric
// limits, -1 and 0 mean "no limit".
//
// +kubebuilder:validation:XValidation:rule="!has(self.mirror) || !has(self.sources) || size(self.sources) == 0",message="set mirror or sources, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.mirror) || !has(self.limitMarkerTtl) || duration(self.limitMarkerTtl) == duration('0s')",message="a mirror cannot leave markers: leave limitMarkerTtl out"
type KeyValueSpec struct {
	// Name of the bucket in NATS. The default is the name of the object. It cannot be
	// changed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=252
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9_-]+$`
	Bucket string `json:"bucket,omitempty"`

	// Whether the bucket may be deleted with all its keys and created again when a change
	// requires it. With Refused, the default, such a change is reported as impossible.
	// +optional
	Recreate RecreatePolicy `json:"recreate,omitempty"`

	// Description of the bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description *string `json:"description,omitempty"`

	// Maximum size of a value, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxValueSize *int32 `json:"maxValueSize,omitempty"`

	// How many values are kept per key. By default, a new bucket keeps one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	History *int64 `json:"history,omitempty"`

	// How long a value is kept. 0s means forever.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('100ms')",message="use 0s for none, or at least 100ms"
	TTL *Duration `json:"ttl,omitempty"`

	// When a key expires, leave a marker for this long so that watchers notice. This also
	// allows a time to live per key, which can be disallowed again only by re-creation.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) == duration('0s') || duration(self) >= duration('1s')",message="use 0s for none, or at least 1s"
	LimitMarkerTTL *Duration `json:"limitMarkerTtl,omitempty"`

	// Maximum size of the bucket, in bytes.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// Where values are kept: file or memory. A change requires re-creation.
	// +optional
	Storage *Storage `json:"storage,omitempty"`

	// On how many servers of a NATS cluster the bucket is stored.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Replicas *int `json:"replicas,omitempty"`

	// Which servers of a NATS cluster may store the bucket; {} means any.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// Publish stored values again under another subject; {} means none.
	// +optional
	Republish *Republish `json:"republish,omitempty"`

	// The bucket to copy: this bucket is its mirror. A change requires re-creation.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name)",message="name is required"
	Mirror *StreamSource `json:"mirror,omitempty"`

	// Buckets to copy keys from. A source that has subjectTransforms names a stream, by its
	// full name, and is passed on unchanged.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.name))",message="every source needs a name"
	Sources []StreamSource `json:"sources,omitempty"`

	// Compress values on disk.
	// +optional
	Compression *bool `json:"compression,omitempty"`

	// Metadata of the bucket. If set, it is managed as a whole, except for the keys that
	// NATS and trimtab use.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('_nats.') && !k.startsWith('trimtab-'))",message="keys that start with _nats. or trimtab- are reserved"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// KeyValueStatus is the last observation of the bucket.
type KeyValueStatus struct {
	api.ExternalStatus `json:",inline"`

	// Name of the bucket in NATS.
	// +optional
	Bucket string `json:"bucket,omitempty"`
	// Name of the stream that stores the bucket.
	// +optional
	Stream string `json:"stream,omitempty"`
	// How many values are kept per key.
	// +optional
	History int64 `json:"history,omitempty"`
	// Where values are kept.
	// +optional
	Storage string `json:"storage,omitempty"`
	// On how many servers the bucket is stored.
	// +optional
	Replicas int `json:"replicas,omitempty"`
	// When NATS created the bucket.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}
