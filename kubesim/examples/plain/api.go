package plain

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the API.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "plain.example.com", Version: "v1"}
}

// AddToScheme registers the API's types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}

// Database is a database at the vendor.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec   `json:"spec"`
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is what a user wants.
type DatabaseSpec struct {
	// Size is in GB.
	Size int64 `json:"size"`
	// Engine cannot be changed. Empty means "postgres", by the CRD.
	Engine string `json:"engine,omitempty"`
}

// DatabaseStatus is what there is.
type DatabaseStatus struct {
	// ObservedGeneration is the generation that the rest of the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ExternalID is the vendor's name for the database.
	ExternalID string `json:"externalID,omitempty"`
	// Conditions has "Ready".
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DatabaseList is a list of databases.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

// DeepCopy returns a copy that shares nothing with d.
func (d *Database) DeepCopy() *Database {
	c := *d
	d.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(d.Status.Conditions)
	return &c
}

// DeepCopyObject is DeepCopy for the scheme.
func (d *Database) DeepCopyObject() runtime.Object { return d.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing with l.
func (l *DatabaseList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Database, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopy()
	}
	return &c
}
