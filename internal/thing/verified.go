package thing

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Gadget stands for one resource of an imaginary API whose operator uses package verify.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GadgetSpec   `json:"spec,omitempty"`
	Status GadgetStatus `json:"status,omitempty"`
}

// GadgetSpec is the desired state of the resource.
type GadgetSpec struct {
	// Size can be changed in place.
	// +optional
	Size int `json:"size,omitempty"`
	// Tier cannot be changed in place.
	// +optional
	Tier string `json:"tier,omitempty"`
	// Password is not shown by the API.
	// +optional
	Password string `json:"password,omitempty"`
	// Owner names the Gadget that owns this one.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Gadget and ConfigMap name objects that must be ready first.
	// +optional
	Gadget string `json:"gadget,omitempty"`
	// +optional
	ConfigMap string `json:"configMap,omitempty"`
}

// GadgetStatus is the last observation of the resource.
type GadgetStatus struct {
	api.ExternalStatus `json:",inline"`
	// Payload is what the operator returned last.
	// +optional
	Payload apiextensionsv1.JSON `json:"payload,omitzero"`
}

// TrimtabStatus implements api.Object.
func (g *Gadget) TrimtabStatus() *api.Status { return &g.Status.Status }

// TrimtabExternal implements api.ExternalObject.
func (g *Gadget) TrimtabExternal() *api.ExternalStatus { return &g.Status.ExternalStatus }

// StatusPayload implements verify.PayloadHolder.
func (g *Gadget) StatusPayload() *apiextensionsv1.JSON { return &g.Status.Payload }

// GadgetList is a list of Gadget.
//
// +kubebuilder:object:root=true
type GadgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gadget `json:"items"`
}
