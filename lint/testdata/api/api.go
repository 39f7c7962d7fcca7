// Package api has custom resources.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Shop is reconciled by the packages beside this one.
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// Spec is what users want.
type Spec struct {
	Size    int               `json:"size,omitempty"`
	Options map[string]string `json:"options,omitempty"`
}

// Status is what the controller reports.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Names              []string           `json:"names,omitempty"`
	LastRun            *metav1.Time       `json:"lastRun,omitempty"`
	Seen               metav1.Time        `json:"seen,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SetPhase changes the status of the receiver; that is the kind's own package.
func (s *Shop) SetPhase(phase string) { s.Status.Phase = phase }

// DeepCopyObject implements runtime.Object.
func (s *Shop) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopy returns a copy.
func (s *Shop) DeepCopy() *Shop { out := *s; return &out }

// ShopList is a list of Shops.
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *ShopList) DeepCopyObject() runtime.Object { out := *l; return &out }

// Database is a kind of another operator.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            Status `json:"status,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (d *Database) DeepCopyObject() runtime.Object { out := *d; return &out }

// Store is a kind that an operator creates.
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec `json:"spec,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (s *Store) DeepCopyObject() runtime.Object { out := *s; return &out }

// ShopApplyConfiguration is what generators make for server-side apply.
type ShopApplyConfiguration struct{}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*ShopApplyConfiguration) IsApplyConfiguration() {}
