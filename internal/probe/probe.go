// Package probe defines kinds for tests of the loop. They have no meaning of their own: each test
// brings the controller it needs.
//
// +kubebuilder:object:generate=true
// +groupName=probe.trimtab.dev
// +versionName=v1
package probe

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "probe.trimtab.dev", Version: "v1"}

// CRDs contains the CustomResourceDefinition of Probe.
//
//go:embed crds/probe.trimtab.dev_probes.yaml
var CRDs embed.FS

// AllCRDs contains those of all kinds of the package.
//
//go:embed crds
var AllCRDs embed.FS

// Probe is a kind with the common status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
type Probe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProbeSpec   `json:"spec,omitempty"`
	Status ProbeStatus `json:"status,omitempty"`
}

// ProbeSpec is the desired state.
type ProbeSpec struct {
	// +optional
	Size int `json:"size,omitempty"`
	// Needs names another Probe in the same namespace.
	// +optional
	Needs string `json:"needs,omitempty"`
}

// ProbeStatus is the common status and one more field.
type ProbeStatus struct {
	api.Status `json:",inline"`
	// +optional
	Note string `json:"note,omitempty"`
}

// TrimtabStatus implements api.Object.
func (p *Probe) TrimtabStatus() *api.Status { return &p.Status.Status }

// ProbeList is a list of Probe.
//
// +kubebuilder:object:root=true
type ProbeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Probe `json:"items"`
}

// Gauge is a kind with status.observedGeneration and without the common status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProbeSpec   `json:"spec,omitempty"`
	Status GaugeStatus `json:"status,omitempty"`
}

// GaugeStatus has the generation of the last pass that succeeded.
type GaugeStatus struct {
	PlainStatus `json:",inline"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// GaugeList is a list of Gauge.
//
// +kubebuilder:object:root=true
type GaugeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gauge `json:"items"`
}

// Plain is a kind whose status has no generation.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProbeSpec   `json:"spec,omitempty"`
	Status PlainStatus `json:"status,omitempty"`
}

// PlainStatus has what an author writes.
type PlainStatus struct {
	// +optional
	Note string `json:"note,omitempty"`
}

// PlainList is a list of Plain.
//
// +kubebuilder:object:root=true
type PlainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plain `json:"items"`
}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Probe{}, &ProbeList{}, &Gauge{}, &GaugeList{}, &Plain{}, &PlainList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
