package apiserver

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// kind is one resource as the storage and clients know it.
type kind struct {
	resource   schema.GroupVersionResource
	kind       schema.GroupVersionKind
	namespaced bool
	codec      runtime.Codec // of what is stored; nil: JSON of a custom resource
	scheme     *runtime.Scheme
}

// Mapper returns what clients learn from discovery, without asking: of a kind in several versions they prefer the
// highest one. It is safe for concurrent use.
func (s *Server) Mapper() meta.RESTMapper {
	versions := map[schema.GroupVersion]bool{} // in which a client finds a kind without naming a version
	for _, k := range s.kinds {
		versions[k.kind.GroupVersion()] = true
	}
	preferred := slices.SortedFunc(maps.Keys(versions), func(a, b schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	m := meta.NewDefaultRESTMapper(preferred)
	for _, k := range s.kinds {
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		singular := k.resource.GroupVersion().WithResource(strings.ToLower(k.kind.Kind))
		m.AddSpecific(k.kind, k.resource, singular, scope)
		// Clients that use discovery know lists as kinds, too: some operators ask for the scope of a list.
		m.Add(k.kind.GroupVersion().WithKind(k.kind.Kind+"List"), scope)
	}
	first := meta.PriorityRESTMapper{Delegate: m}
	for _, gv := range preferred {
		first.KindPriority = append(first.KindPriority, gv.WithKind(meta.AnyKind))
		first.ResourcePriority = append(first.ResourcePriority, gv.WithResource(meta.AnyResource))
	}
	return first
}

// Object decodes what is stored under a key.
func (s *Server) Object(key string, data []byte) (schema.GroupResource, *unstructured.Unstructured, error) {
	k, ok := s.kindOf(key)
	gr := k.resource.GroupResource()
	if !ok { // of a CRD that came later
		parts := strings.SplitN(key, "/", 4)
		if len(parts) < 4 || !bytes.HasPrefix(data, []byte("{")) {
			return gr, nil, fmt.Errorf("kubesim: no kind is stored under %s", key)
		}
		gr = schema.GroupResource{Group: parts[1], Resource: parts[2]}
	}
	if k.codec == nil {
		u := &unstructured.Unstructured{}
		return gr, u, json.Unmarshal(data, &u.Object)
	}
	internal, _, err := k.codec.Decode(data, nil, nil)
	if err != nil {
		return gr, nil, fmt.Errorf("decode %s: %w", key, err)
	}
	external, err := k.scheme.ConvertToVersion(internal, k.kind.GroupVersion())
	if err != nil {
		return gr, nil, fmt.Errorf("convert %s: %w", key, err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(external)
	return gr, &unstructured.Unstructured{Object: content}, err
}

// kindOf finds the kind that is stored under a key: the prefix goes as far as a resource's
// name, which may hold slashes itself.
func (s *Server) kindOf(key string) (kind, bool) {
	for end := len(key); end > 0; end = strings.LastIndexByte(key[:end], '/') {
		if k, ok := s.byPrefix[key[:end]]; ok {
			return k, true
		}
	}
	return kind{}, false
}

// builtinKinds lists the kinds of the built-in groups, with the prefix each is stored under.
func builtinKinds(groups []*genericapiserver.APIGroupInfo, storage storageOptions) (map[string]kind, error) {
	kinds := map[string]kind{}
	for _, g := range groups {
		for _, version := range g.PrioritizedVersions {
			for resource, registry := range g.VersionedResourcesStorageMap[version.Version] {
				k, ok := builtinKind(version.WithResource(resource), registry, g.Scheme)
				if !ok {
					continue
				}
				gr := k.resource.GroupResource()
				options, err := optionsOf(g.Scheme, storage).GetRESTOptions(gr, registry.New())
				if err != nil {
					return nil, err
				}
				k.codec = options.StorageConfig.Codec
				prefix := options.ResourcePrefix
				if _, later := kinds[prefix]; !later { // the preferred version comes first
					kinds[prefix] = k
				}
			}
		}
	}
	return kinds, nil
}

// optionsOf returns where the kinds of a scheme are stored.
func optionsOf(scheme *runtime.Scheme, storage storageOptions) generic.RESTOptionsGetter {
	if scheme == crdserver.Scheme {
		return definitionStorage{}
	}
	return storage
}

func builtinKind(resource schema.GroupVersionResource, registry rest.Storage, scheme *runtime.Scheme) (kind, bool) {
	scoper, ok := registry.(rest.Scoper)
	_, stored := registry.(rest.Getter)
	if !ok || !stored || strings.Contains(resource.Resource, "/") {
		return kind{}, false
	}
	kinds, _, err := scheme.ObjectKinds(registry.New())
	if err != nil || len(kinds) == 0 {
		return kind{}, false
	}
	return kind{
		resource: resource, kind: resource.GroupVersion().WithKind(kinds[0].Kind),
		namespaced: scoper.NamespaceScoped(), scheme: scheme,
	}, true
}

// customKinds lists the served versions of CRDs.
func customKinds(crds []*apiextensionsv1.CustomResourceDefinition) (byPrefix map[string]kind, all []kind) {
	byPrefix = map[string]kind{}
	for _, c := range crds {
		for _, v := range c.Spec.Versions {
			gv := schema.GroupVersion{Group: c.Spec.Group, Version: v.Name}
			k := kind{
				resource: gv.WithResource(c.Spec.Names.Plural), kind: gv.WithKind(c.Spec.Names.Kind),
				namespaced: c.Spec.Scope == apiextensionsv1.NamespaceScoped,
			}
			if v.Served {
				all = append(all, k)
			}
			if v.Storage {
				byPrefix["/"+c.Spec.Group+"/"+c.Spec.Names.Plural] = k
			}
		}
	}
	return byPrefix, all
}
