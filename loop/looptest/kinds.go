package looptest

import (
	"errors"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
)

// kinds are what a server in memory knows of its kinds.
type kinds struct {
	mapper meta.RESTMapper
	// whole are the custom kinds whose status is no subresource.
	whole map[schema.GroupVersionKind]bool
	// custom are an object of each custom kind whose status is a subresource.
	custom []client.Object
}

// kindsOf learns of custom kinds by their CRDs. One without a CRD is namespaced, its plural follows the rules of English,
// and its status is a subresource.
func kindsOf(scheme *runtime.Scheme, crds fs.FS) (kinds, error) {
	defined := meta.NewDefaultRESTMapper(nil)
	whole := map[schema.GroupVersionKind]bool{}
	if crds != nil {
		if err := manifest.Documents(crds, func(document []byte) error { return define(document, defined, whole) }); err != nil {
			return kinds{}, fmt.Errorf("read Cluster.CRDs: %w", err)
		}
	}
	k := kinds{whole: whole, mapper: meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{defined, testrestmapper.TestOnlyStaticRESTMapper(scheme)}}}
	for kind := range scheme.AllKnownTypes() {
		if whole[kind] || clientgoscheme.Scheme.Recognizes(kind) || clientgoscheme.Scheme.IsVersionRegistered(kind.GroupVersion()) || kind.Version == runtime.APIVersionInternal {
			continue
		}
		if obj, err := scheme.New(kind); err == nil {
			if o, is := obj.(client.Object); is {
				k.custom = append(k.custom, o)
			}
		}
	}
	return k, nil
}

// define adds what a CRD says to a mapper and to the kinds whose status is no subresource.
func define(document []byte, to *meta.DefaultRESTMapper, whole map[schema.GroupVersionKind]bool) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(document, &crd); err != nil {
		return err
	}
	if crd.Kind != "" && crd.Kind != "CustomResourceDefinition" {
		return fmt.Errorf("contains a %s; only CustomResourceDefinitions are allowed", crd.Kind)
	}
	scope, names := meta.RESTScopeNamespace, crd.Spec.Names
	if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
		scope = meta.RESTScopeRoot
	}
	for _, v := range crd.Spec.Versions {
		version := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}
		to.AddSpecific(version.WithKind(names.Kind), version.WithResource(names.Plural), version.WithResource(names.Singular), scope)
		whole[version.WithKind(names.Kind)] = v.Subresources == nil || v.Subresources.Status == nil
	}
	return nil
}

// newTracker returns where the fake client keeps objects: as it does by itself, but in the hands of the server, which undoes
// what an API server refuses.
func newTracker(scheme *runtime.Scheme) clienttesting.ObjectTracker {
	return clienttesting.NewFieldManagedObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder(),
		converter{clientgoapply.NewTypeConverter(clientgoscheme.Scheme), managedfields.NewDeducedTypeConverter()})
}

// converter knows the lists of Kubernetes' own kinds, and deduces the rest.
type converter struct{ own, deduced managedfields.TypeConverter }

// ObjectToTyped implements managedfields.TypeConverter.
func (c converter) ObjectToTyped(o runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	value, err := c.own.ObjectToTyped(o, opts...)
	if err == nil {
		return value, nil
	}
	value, other := c.deduced.ObjectToTyped(o, opts...)
	if other != nil {
		return nil, errors.Join(err, other)
	}
	return value, nil
}

// TypedToObject implements managedfields.TypeConverter.
func (c converter) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	o, err := c.own.TypedToObject(v)
	if err == nil {
		return o, nil
	}
	return c.deduced.TypedToObject(v)
}
