package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Grant is what a role may do with a database.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=grants,shortName=pggrant,categories={trimtab,postgres}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.spec.role == oldSelf.spec.role && self.spec.database == oldSelf.spec.database",message="a grant stays that of its role and its database: create another one",fieldPath=".spec"
type Grant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GrantSpec `json:"spec"`
	// +optional
	Status GrantStatus `json:"status,omitempty,omitzero"`
}

// GrantSpec is what a role may do with a database.
type GrantSpec struct {
	// Server names the Server, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	Server string `json:"server"`
	// Role names the Role.
	// +kubebuilder:validation:MinLength=1
	Role string `json:"role"`
	// Database names the Database.
	// +kubebuilder:validation:MinLength=1
	Database string `json:"database"`
	// Privileges are what the role may do. All others are revoked.
	// +kubebuilder:validation:MinItems=1
	Privileges []Privilege `json:"privileges"`
}

// Privilege is what a role may do with a database.
//
// +kubebuilder:validation:Enum=CONNECT;CREATE;TEMPORARY
type Privilege string

// GrantStatus is what a role may do with a database now.
type GrantStatus struct {
	api.ExternalStatus `json:",inline"`

	// Role and Database are their names on the server.
	// +optional
	Role string `json:"role,omitempty"`
	// +optional
	Database string `json:"database,omitempty"`
}

// TrimtabStatus returns the common status.
func (g *Grant) TrimtabStatus() *api.Status { return &g.Status.Status }

// TrimtabExternal returns the status of the grant.
func (g *Grant) TrimtabExternal() *api.ExternalStatus { return &g.Status.ExternalStatus }

// GrantList is a list of grants.
//
// +kubebuilder:object:root=true
type GrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Grant `json:"items"`
}
