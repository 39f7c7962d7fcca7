package apiserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/managedfields"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"
	openapiutil "k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// lateTypes know the types of the built-in kinds by the time of the first request. The
// handlers want something earlier, but do not ask it.
type lateTypes struct{ managedfields.TypeConverter }

// learn makes the schemas of the types that the groups serve, and returns those of metadata,
// which custom resources refer to.
func (l *lateTypes) learn(groups []*genericapiserver.APIGroupInfo) (map[string]*spec.Schema, error) {
	names, err := typeNames(groups)
	if err != nil {
		return nil, err
	}
	schemas, err := builder3.BuildOpenAPIDefinitionsForResources(openAPIConfig(), names...)
	if err != nil {
		return nil, err
	}
	if l.TypeConverter, err = managedfields.NewTypeConverter(schemas, false); err != nil {
		return nil, err
	}
	maps.DeleteFunc(schemas, func(name string, _ *spec.Schema) bool { return !strings.HasPrefix(name, "io.k8s.apimachinery.") })
	return schemas, nil
}

// typeNames lists the Go types of the groups' resources.
func typeNames(groups []*genericapiserver.APIGroupInfo) ([]string, error) {
	var names []string
	for _, g := range groups {
		for _, gv := range g.PrioritizedVersions {
			for resource, registry := range g.VersionedResourcesStorageMap[gv.Version] {
				kind, err := genericapi.GetResourceKind(gv, registry, g.Scheme)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", resource, gv, err)
				}
				object, err := g.Scheme.New(kind)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", resource, gv, err)
				}
				names = append(names, openapiutil.GetCanonicalTypeName(object))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
