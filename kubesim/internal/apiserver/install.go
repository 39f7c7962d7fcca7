package apiserver

import (
	"fmt"
	"net/http"
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// installer puts the real server's handlers in front of registries. The real server's generic
// part does the same, but makes the schemas of all types twice before, and cannot do it beside.
type installer struct {
	server      *genericapiserver.APIServerHandler
	types       managedfields.TypeConverter
	equivalents runtime.EquivalentResourceRegistry
	admit       admission.Interface
	allow       authorizer.Authorizer

	legacy, told *announcements
}

func newInstaller(types managedfields.TypeConverter) (*installer, error) {
	straight := func(h http.Handler) http.Handler { return h }
	in := &installer{
		server:      genericapiserver.NewAPIServerHandler("kubesim", legacyscheme.Codecs, straight, nil),
		types:       types,
		equivalents: runtime.NewEquivalentResourceRegistry(),
		admit:       admissionChain(),
		allow:       byRoles(),
	}
	var err error
	if in.legacy, err = newAnnouncements(); err != nil {
		return nil, err
	}
	in.told, err = newAnnouncements()
	return in, err
}

// install makes the handlers of all groups, the core group first.
func (in *installer) install(groups []*genericapiserver.APIGroupInfo) error {
	addresses := discovery.DefaultAddresses{DefaultAddress: "kubesim:443"}
	if err := in.resources("/api", groups[0], in.legacy); err != nil {
		return err
	}
	container := in.server.GoRestfulContainer
	versions := discovery.NewLegacyRootAPIHandler(addresses, legacyscheme.Codecs, "/api")
	container.Add(aggregated.WrapAggregatedDiscoveryToHandler(versions, in.legacy, in.legacy).GenerateWebService("/api", metav1.APIVersions{}))
	list := discovery.NewRootAPIsHandler(addresses, legacyscheme.Codecs)
	container.Add(list.WebService())
	for _, g := range groups[1:] {
		if err := in.resources("/apis", g, in.told); err != nil {
			return err
		}
		group := describe(g)
		list.AddGroup(group)
		container.Add(discovery.NewAPIGroupHandler(legacyscheme.Codecs, group).WebService())
	}
	return nil
}

// resources makes the handlers of a group's resources and tells of them.
func (in *installer) resources(root string, g *genericapiserver.APIGroupInfo, to *announcements) error {
	for _, gv := range g.PrioritizedVersions {
		found, _, err := in.version(root, g, gv).InstallREST(in.server.GoRestfulContainer)
		if err != nil {
			return fmt.Errorf("install %s: %w", gv, err)
		}
		to.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
			Version: gv.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: found,
		})
	}
	return nil
}

func (in *installer) version(root string, g *genericapiserver.APIGroupInfo, gv schema.GroupVersion) *genericapi.APIGroupVersion {
	versions := map[string][]string{}
	for _, v := range g.PrioritizedVersions {
		for resource := range g.VersionedResourcesStorageMap[v.Version] {
			versions[resource] = append(versions[resource], v.String())
		}
	}
	return &genericapi.APIGroupVersion{
		Root: root, GroupVersion: gv, Storage: g.VersionedResourcesStorageMap[gv.Version], AllServedVersionsByResource: versions,
		OptionsExternalVersion: g.OptionsExternalVersion, MetaGroupVersion: g.MetaGroupVersion,
		Serializer: g.NegotiatedSerializer, ParameterCodec: g.ParameterCodec,
		Typer: g.Scheme, Creater: g.Scheme, Convertor: g.Scheme, ConvertabilityChecker: g.Scheme, Defaulter: g.Scheme, //nolint:misspell // not ours
		UnsafeConvertor: runtime.UnsafeObjectConvertor(g.Scheme), Namer: meta.NewAccessor(),
		TypeConverter: in.types, EquivalentResourceRegistry: in.equivalents,
		Authorizer: in.allow, Admit: in.admit,
		MinRequestTimeout: watchTime, MaxRequestBodyBytes: maxBody,
	}
}

// The real server's defaults: how long a watch lasts at least, and what a request may hold.
const (
	watchTime = 30 * time.Minute
	maxBody   = 3 << 20
)

// describe tells which versions of a group there are.
func describe(g *genericapiserver.APIGroupInfo) metav1.APIGroup {
	group := metav1.APIGroup{Name: g.PrioritizedVersions[0].Group}
	for _, gv := range g.PrioritizedVersions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}
