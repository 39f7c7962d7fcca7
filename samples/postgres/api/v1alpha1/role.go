package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Role is a role of a PostgreSQL server, with a password that the operator chooses.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=roles,shortName=pgrole,categories={trimtab,postgres}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="(has(self.spec.name) ? self.spec.name : self.metadata.name) == (has(oldSelf.spec.name) ? oldSelf.spec.name : oldSelf.metadata.name)",message="a role is not renamed: create another one and delete this one",fieldPath=".spec"
type Role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RoleSpec `json:"spec"`
	// +optional
	Status RoleStatus `json:"status,omitempty,omitzero"`
}

// RoleSpec is what a role should be.
type RoleSpec struct {
	// Server names the Server, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	Server string `json:"server"`
	// Name of the role. The default is the name of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// CreateDB allows the role to create databases.
	// +optional
	CreateDB *bool `json:"createDB,omitempty"`
	// ConnectionLimit is how many connections the role may have. -1 means any number.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`
	// Connection names the Secret that gets host, port, username and password. The role can log in with them. Remove the key
	// password to have another one chosen.
	// +optional
	Connection api.SecretReference `json:"connection,omitzero"`
}

// RoleStatus is what a role is.
type RoleStatus struct {
	api.ExternalStatus `json:",inline"`
}

// SQLName is the name of the role on its server.
func (r *Role) SQLName() string { return cmp.Or(r.Spec.Name, r.Name) }

// TrimtabStatus returns the common status.
func (r *Role) TrimtabStatus() *api.Status { return &r.Status.Status }

// TrimtabExternal returns the status of the role.
func (r *Role) TrimtabExternal() *api.ExternalStatus { return &r.Status.ExternalStatus }

// RoleList is a list of roles.
//
// +kubebuilder:object:root=true
type RoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Role `json:"items"`
}
