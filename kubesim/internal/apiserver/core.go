package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// core serves the built-in kinds. It holds no data, so one serves all clusters of a process;
// it is made outside any bubble, because it costs tens of milliseconds.
type core struct {
	handler http.Handler
	// schemas are those of metadata, which custom resources refer to.
	schemas map[string]*spec.Schema
	groups  []*genericapiserver.APIGroupInfo
	kinds   map[string]kind // by the prefix that they are stored under
	serves  map[schema.GroupVersion]bool

	discovery builtinDiscovery
	openAPI   builtinOpenAPI
}

// sharedCore makes the process's core at first use.
//
//arch:state it holds no objects, costs tens of milliseconds and 50 MB, and is the same for all.
var sharedCore = sync.OnceValues(func() (c *core, err error) {
	outside(func() {
		unhurry()
		// All that is made here stays, so there is nothing to collect meanwhile.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		c, err = newCore()
	})
	return c, err
})

func newCore() (*core, error) {
	storage, err := newStorageOptions()
	if err != nil {
		return nil, err
	}
	c := &core{}
	if c.groups, err = builtinGroups(storage, newServer(c)); err != nil {
		return nil, err
	}
	types := &lateTypes{}
	in, err := newInstaller(types)
	if err != nil {
		return nil, err
	}
	var unlearned error
	var learning sync.WaitGroup // it takes nearly as long as installing, so both go on at once
	learning.Go(func() { c.schemas, unlearned = types.learn(c.groups) })
	err = in.install(c.groups)
	learning.Wait()
	if err := errors.Join(err, unlearned); err != nil {
		return nil, fmt.Errorf("make the built-in kinds: %w", err)
	}
	return c, c.describe(in, storage)
}

// builtinGroups makes the registries of all groups, the core group first.
func builtinGroups(storage storageOptions, self *Server) ([]*genericapiserver.APIGroupInfo, error) {
	legacy, err := legacyGroup(storage, self)
	if err != nil {
		return nil, fmt.Errorf("make the core group: %w", err)
	}
	groups := []*genericapiserver.APIGroupInfo{&legacy}
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
			groups = append(groups, &group)
		}
	}
	definitions, err := definitionGroup()
	if err != nil {
		return nil, err
	}
	groups = append(groups, &definitions)
	for _, g := range groups {
		g.PrioritizedVersions = slices.DeleteFunc(slices.Clone(g.PrioritizedVersions), func(gv schema.GroupVersion) bool {
			return len(g.VersionedResourcesStorageMap[gv.Version]) == 0
		})
	}
	return groups, nil
}

// describe learns what the groups serve.
func (c *core) describe(in *installer, storage storageOptions) (err error) {
	c.handler, c.openAPI = in.server.Director, newBuiltinOpenAPI(in.server)
	c.serves = map[schema.GroupVersion]bool{}
	for _, g := range c.groups {
		for _, gv := range g.PrioritizedVersions {
			c.serves[gv] = true
		}
	}
	if c.discovery, err = newBuiltinDiscovery(c.handler, in.told); err != nil {
		return err
	}
	c.kinds, err = builtinKinds(c.groups, storage)
	return err
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
