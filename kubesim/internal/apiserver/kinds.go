package apiserver

import (
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Kind is a kind of objects that a cluster serves.
type Kind struct {
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	Namespaced bool
	// Custom tells that it comes from a CRD.
	Custom bool
	// Prefix is what keys of its objects begin with, without the slash after it: "/secrets".
	Prefix string
}

// Key returns where an object of the kind is stored. The namespace counts for namespaced
// kinds alone.
func (k Kind) Key(namespace, name string) string {
	if k.Namespaced {
		return k.Prefix + "/" + namespace + "/" + name
	}
	return k.Prefix + "/" + name
}

// KindOf returns the kind of the object that is stored under a key of a cluster.
func (s *Server) KindOf(db *store.DB, key string) (Kind, bool) {
	k, ok := s.kindOf(key)
	if !ok || k.codec == nil {
		return s.customKindOf(db, key)
	}
	prefix := key[:strings.LastIndexByte(key, '/')]
	if k.namespaced {
		prefix = prefix[:strings.LastIndexByte(prefix, '/')]
	}
	return k.public(prefix), true
}

// customKindOf finds the CRD of an object that is stored under a key: "/example.com/stones/...".
// The version is the one that discovery prefers, as it is for a cluster's controllers: what
// they write is defaulted by it.
func (s *Server) customKindOf(db *store.DB, key string) (Kind, bool) {
	parts := strings.SplitN(key, "/", 4)
	if len(parts) < 4 {
		return Kind{}, false
	}
	d := definitionsOf.Of(db).byName(parts[2] + "." + parts[1])
	if d == nil {
		return Kind{}, false
	}
	preferred := ""
	for _, v := range d.Spec.Versions {
		if v.Served && (preferred == "" || version.CompareKubeAwareVersionStrings(v.Name, preferred) > 0) {
			preferred = v.Name
		}
	}
	return d.public(preferred), preferred != ""
}

// KindNamed returns a kind that a cluster serves, by name.
func (s *Server) KindNamed(db *store.DB, name schema.GroupVersionKind) (Kind, bool) {
	for _, d := range definitionsOf.Of(db) {
		if d.Spec.Group == name.Group && d.Spec.Names.Kind == name.Kind {
			return d.public(name.Version), d.served() && apihelpers.HasServedCRDVersion(d.CustomResourceDefinition, name.Version)
		}
	}
	for prefix, k := range s.core.kinds {
		if k.kind == name {
			return k.public(prefix), true
		}
	}
	return Kind{}, false
}

// Plain returns a kind whose objects clients read as they are stored, whatever else there is in a cluster: a built-in kind in
// the version that is stored, or a custom one that has no other version. digest differs when the kind does.
func (s *Server) Plain(db *store.DB, name schema.GroupVersionKind) (k Kind, digest string, ok bool) {
	for prefix, k := range s.core.kinds {
		if k.kind == name {
			return k.public(prefix), "", true
		}
	}
	for _, d := range definitionsOf.Of(db) {
		if d.Spec.Group == name.Group && d.Spec.Names.Kind == name.Kind && len(d.Spec.Versions) == 1 && d.Spec.Versions[0].Name == name.Version {
			return d.public(name.Version), string(d.print[:]), d.served()
		}
	}
	return Kind{}, "", false
}

func (k kind) public(prefix string) Kind {
	return Kind{Resource: k.resource, Kind: k.kind, Namespaced: k.namespaced, Prefix: prefix}
}

func (d *definition) public(version string) Kind {
	gv := schema.GroupVersion{Group: d.Spec.Group, Version: version}
	return Kind{
		Resource: gv.WithResource(d.Spec.Names.Plural), Kind: gv.WithKind(d.Spec.Names.Kind),
		Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, Custom: true,
		Prefix: "/" + d.Spec.Group + "/" + d.Spec.Names.Plural,
	}
}
