// Package v1alpha1 defines the kinds of the NATS operator: [Stream], [Consumer] and
// [KeyValue].
//
// One rule applies to every field of their specs. A field that is left out, or set to the
// empty string, is not managed: the server's default, or what others have set, stays as it
// is. Any other empty value ({}, [], false, 0s) means "none", and the operator enforces it.
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

// AddToScheme adds the kinds of this package to s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Stream{}, &StreamList{},
		&Consumer{}, &ConsumerList{},
		&KeyValue{}, &KeyValueList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
