// Package v1alpha1 defines the kinds of the PostgreSQL operator: [Server], which says how to log in, and [Database], [Role] and
// [Grant]. A field that is left out is not managed.
//
// +kubebuilder:object:generate=true
// +groupName=postgres.trimtab.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "postgres.trimtab.dev", Version: "v1alpha1"}

// AddToScheme adds the kinds of this package to s.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Server{}, &ServerList{},
		&Database{}, &DatabaseList{},
		&Role{}, &RoleList{},
		&Grant{}, &GrantList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
