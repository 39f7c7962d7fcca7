package apiserver

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	crdserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// core serves the built-in kinds. It holds no data, so one serves all worlds of a process;
// it is made outside any bubble, because it costs tens of milliseconds.
type core struct {
	handler http.Handler
	// schemas are the built-in types' OpenAPI schemas, which custom resources refer to.
	schemas map[string]*spec.Schema
	groups  []*genericapiserver.APIGroupInfo
	kinds   map[string]kind // by the prefix that they are stored under
	serves  map[schema.GroupVersion]bool

	discovery builtinDiscovery
}

// sharedCore makes the process's core at first use.
//
//arch:state it holds no objects, costs tens of milliseconds and 50 MB, and is the same for all.
var sharedCore = sync.OnceValues(func() (c *core, err error) {
	outside(func() {
		unhurry()
		// All that is made here stays, so there is nothing to collect meanwhile.
		defer debug.SetGCPercent(debug.SetGCPercent(400))
		c, err = newCore()
	})
	return c, err
})

func newCore() (*core, error) {
	storage, err := newStorageOptions()
	if err != nil {
		return nil, err
	}
	told, err := newAnnouncements()
	if err != nil {
		return nil, err
	}
	server, err := newGenericServer(storage, told)
	if err != nil {
		return nil, err
	}
	c := &core{}
	self := newServer(c)
	legacy, err := legacyGroup(storage, self)
	if err != nil {
		return nil, fmt.Errorf("make the core group: %w", err)
	}
	if err := server.InstallLegacyAPIGroup("/api", &legacy); err != nil {
		return nil, fmt.Errorf("install the core group: %w", err)
	}
	c.schemas, c.groups = legacy.StaticOpenAPISpec, []*genericapiserver.APIGroupInfo{&legacy}
	providers, err := providers(inner{server: self}.config())
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		group, err := p.NewRESTStorage(served(), storage)
		if err != nil {
			return nil, fmt.Errorf("make group %s: %w", p.GroupName(), err)
		}
		if len(group.VersionedResourcesStorageMap) > 0 {
			c.groups = append(c.groups, &group)
		}
	}
	definitions, err := definitionGroup()
	if err != nil {
		return nil, err
	}
	c.groups = append(c.groups, &definitions)
	for _, g := range c.groups[1:] {
		g.PrioritizedVersions = slices.DeleteFunc(slices.Clone(g.PrioritizedVersions), func(gv schema.GroupVersion) bool {
			return len(g.VersionedResourcesStorageMap[gv.Version]) == 0 // the server would log that it skips it
		})
	}
	if err := server.InstallAPIGroups(c.groups[1:]...); err != nil {
		return nil, fmt.Errorf("install the built-in groups: %w", err)
	}
	return c, c.describe(server.Handler.Director, told, storage)
}

// describe learns what the groups serve.
func (c *core) describe(handler http.Handler, told *announcements, storage storageOptions) (err error) {
	c.handler = handler
	c.serves = map[schema.GroupVersion]bool{}
	for _, g := range c.groups {
		for _, gv := range g.PrioritizedVersions {
			c.serves[gv] = true
		}
	}
	if c.discovery, err = newBuiltinDiscovery(handler, told); err != nil {
		return err
	}
	c.kinds, err = builtinKinds(c.groups, storage)
	return err
}

func newGenericServer(storage generic.RESTOptionsGetter, told *announcements) (*genericapiserver.GenericAPIServer, error) {
	cfg := genericapiserver.NewConfig(legacyscheme.Codecs)
	cfg.LoopbackClientConfig = &restclient.Config{}
	cfg.ExternalAddress = "kubesim:443"
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.Authorization.Authorizer = byRoles()
	cfg.AdmissionControl = admissionChain()
	cfg.LegacyAPIGroupPrefixes = sets.NewString("/api")
	cfg.RESTOptionsGetter = storage
	cfg.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
		generatedopenapi.GetOpenAPIDefinitions, openapinamer.NewDefinitionNamer(legacyscheme.Scheme, crdserver.Scheme))
	cfg.OpenAPIV3Config.Info.Title = "kubesim"
	cfg.EnableIndex, cfg.EnableProfiling = false, false
	cfg.BuildHandlerChainFunc = func(handler http.Handler, _ *genericapiserver.Config) http.Handler { return handler }
	cfg.AggregatedDiscoveryGroupManager = told
	server, err := cfg.Complete(nil).New("kubesim", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	server.AggregatedLegacyDiscoveryGroupManager, err = newAnnouncements()
	return server, err
}

// storageOptions puts the memory store under built-in kinds, each encoded as etcd would
// hold it: protobuf, in the storage version.
type storageOptions struct{ factory serverstorage.StorageFactory }

func newStorageOptions() (storageOptions, error) {
	etcd := options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil))
	etcd.DefaultStorageMediaType = "application/vnd.kubernetes.protobuf"
	config := kubeapiserver.NewStorageFactoryConfig()
	config.APIResourceConfig = served()
	f, err := config.Complete(etcd).New()
	return storageOptions{f}, err
}

func (o storageOptions) GetRESTOptions(gr schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	config, err := o.factory.NewConfig(gr, example)
	if err != nil {
		return generic.RESTOptions{}, fmt.Errorf("storage of %s: %w", gr, err)
	}
	return restOptions(config, "/"+o.factory.ResourcePrefix(gr)), nil
}

// customStorage puts the memory store under custom resources.
type customStorage struct{}

func (customStorage) GetRESTOptions(gr schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	config := storagebackend.NewDefaultConfig("/registry", jsonCodec).ForResource(gr)
	return restOptions(config, "/"+gr.Group+"/"+gr.Resource), nil
}

func restOptions(config *storagebackend.ConfigForResource, prefix string) generic.RESTOptions {
	return generic.RESTOptions{
		StorageConfig:           config,
		Decorator:               store.Decorate,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1, // more would make equal runs differ
		ResourcePrefix:          prefix,
	}
}

// provider makes the registries of one API group.
type provider interface {
	GroupName() string
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

const eventTTL = time.Hour
