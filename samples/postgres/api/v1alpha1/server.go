package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/api"
)

// Server says where a PostgreSQL server is and how to log in. It is not deleted while other objects name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=servers,shortName=pgserver,categories={trimtab,postgres}
// +kubebuilder:printcolumn:name="HOST",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="PORT",type=integer,JSONPath=`.spec.port`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type Server struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServerSpec `json:"spec"`
}

// ServerSpec says where a server is and how to log in.
type ServerSpec struct {
	// Host is the host name or address, or the directory of the server's socket.
	// +kubebuilder:validation:MinLength=1
	Host string `json:"host"`
	// Port defaults to 5432.
	// +optional
	// +kubebuilder:default=5432
	Port int32 `json:"port,omitempty"`
	// Database is the one to log in to.
	// +optional
	// +kubebuilder:default=postgres
	Database string `json:"database,omitempty"`
	// Username is the role to log in as. It must be allowed to create databases and roles.
	// +kubebuilder:validation:MinLength=1
	Username string `json:"username"`
	// Password is the password of that role.
	// +optional
	Password api.SecretKeyReference `json:"password,omitzero"`
	// SSLMode is that of libpq.
	// +optional
	// +kubebuilder:default=prefer
	// +kubebuilder:validation:Enum=disable;allow;prefer;require;verify-ca;verify-full
	SSLMode string `json:"sslMode,omitempty"`
}

// ServerList is a list of servers.
//
// +kubebuilder:object:root=true
type ServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Server `json:"items"`
}
