package corpus

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "corpus.example.com", Version: "v1"}
}

// AddToScheme registers the API that all operators here share.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(groupVersion(), &Item{}, &ItemList{}, &Part{}, &PartList{}, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(s, groupVersion())
	return nil
}

// Spec is what a user wants.
type Spec struct {
	Size int64  `json:"size,omitempty"`
	Text string `json:"text,omitempty"`
}

// Status is what there is.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ExternalID         string             `json:"externalID,omitempty"`
	LastObservedAt     *metav1.Time       `json:"lastObservedAt,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (s Status) deepCopy() Status {
	s.Conditions = slices.Clone(s.Conditions)
	s.LastObservedAt = s.LastObservedAt.DeepCopy()
	return s
}

// Item is a namespaced object.
type Item struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// ItemList is a list of items.
type ItemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Item `json:"items"`
}

// Part is what operators make of items.
type Part Item

// PartList is a list of parts.
type PartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Part `json:"items"`
}

// Site is a cluster-scoped object.
type Site Item

// SiteList is a list of sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// DeepCopy returns a copy that shares nothing with i.
func (i *Item) DeepCopy() *Item {
	c := *i
	c.ObjectMeta = *i.ObjectMeta.DeepCopy()
	c.Status = i.Status.deepCopy()
	return &c
}

// DeepCopy returns a copy that shares nothing with p.
func (p *Part) DeepCopy() *Part { return (*Part)((*Item)(p).DeepCopy()) }

// DeepCopy returns a copy that shares nothing with s.
func (s *Site) DeepCopy() *Site { return (*Site)((*Item)(s).DeepCopy()) }

// DeepCopyObject is for the scheme.
func (i *Item) DeepCopyObject() runtime.Object { return i.DeepCopy() }

// DeepCopyObject is for the scheme.
func (p *Part) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject is for the scheme.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject is for the scheme.
func (l *ItemList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = copies(l.Items, (*Item).DeepCopy)
	return &c
}

// DeepCopyObject is for the scheme.
func (l *PartList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = copies(l.Items, (*Part).DeepCopy)
	return &c
}

// DeepCopyObject is for the scheme.
func (l *SiteList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = copies(l.Items, (*Site).DeepCopy)
	return &c
}

func copies[T any](all []T, one func(*T) *T) []T {
	c := make([]T, len(all))
	for i := range all {
		c[i] = *one(&all[i])
	}
	return c
}
