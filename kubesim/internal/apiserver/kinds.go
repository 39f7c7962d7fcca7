package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Kind is a kind of objects that a world serves.
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

// KindOf returns the kind of the object that is stored under a key of a world.
func (s *Server) KindOf(_ *store.DB, key string) (Kind, bool) {
	k, ok := s.kindOf(key)
	if !ok {
		return Kind{}, false
	}
	prefix := key[:strings.LastIndexByte(key, '/')]
	if k.namespaced {
		prefix = prefix[:strings.LastIndexByte(prefix, '/')]
	}
	return k.public(prefix), true
}

// KindNamed returns a kind that a world serves, by name.
func (s *Server) KindNamed(_ *store.DB, name schema.GroupVersionKind) (Kind, bool) {
	for _, k := range s.kinds {
		if k.kind != name {
			continue
		}
		for prefix, stored := range s.byPrefix {
			if stored.resource.GroupResource() == k.resource.GroupResource() {
				return k.public(prefix), true
			}
		}
	}
	return Kind{}, false
}

func (k kind) public(prefix string) Kind {
	return Kind{Resource: k.resource, Kind: k.kind, Namespaced: k.namespaced, Custom: k.codec == nil, Prefix: prefix}
}
