// Package v1alpha1 holds the kinds of the NATS operator: [Stream], [Consumer] and
// [KeyValue].
//
// One rule holds for every field of their specs: what is left out is not managed, so the
// server's defaults and what others set there stay as they are. An empty value ({}, [], "",
// false, 0s) asks for "none" and is kept that way.
//
// +kubebuilder:object:generate=true
// +groupName=nats.trimtab.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "nats.trimtab.dev", Version: "v1alpha1"}

// AddToScheme adds the kinds of this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Stream{}, &StreamList{},
		&Consumer{}, &ConsumerList{},
		&KeyValue{}, &KeyValueList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
