package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Database is a database of a PostgreSQL server.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=databases,shortName=pgdb,categories={trimtab,postgres}
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="(has(self.spec.name) ? self.spec.name : self.metadata.name) == (has(oldSelf.spec.name) ? oldSelf.spec.name : oldSelf.metadata.name)",message="a database is not renamed: create another one and delete this one",fieldPath=".spec"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`
	// +optional
	Status DatabaseStatus `json:"status,omitempty,omitzero"`
}

// DatabaseSpec is what a database should be.
type DatabaseSpec struct {
	// Server names the Server, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	Server string `json:"server"`
	// Name of the database. The default is the name of the object.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// Owner names the Role that owns the database.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Encoding is that of the text, as in UTF8. It cannot be changed.
	// +optional
	Encoding string `json:"encoding,omitempty"`
	// ConnectionLimit is how many connections there may be. -1 means any number.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`
}

// DatabaseStatus is what a database is.
type DatabaseStatus struct {
	api.ExternalStatus `json:",inline"`

	// Encoding of the text.
	// +optional
	Encoding string `json:"encoding,omitempty"`
}

// SQLName is the name of the database on its server.
func (d *Database) SQLName() string { return cmp.Or(d.Spec.Name, d.Name) }

// TrimtabStatus returns the common status.
func (d *Database) TrimtabStatus() *api.Status { return &d.Status.Status }

// TrimtabExternal returns the status of the database.
func (d *Database) TrimtabExternal() *api.ExternalStatus { return &d.Status.ExternalStatus }

// DatabaseList is a list of databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}
