package apiserver

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	admissionregistrationclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	restclient "k8s.io/client-go/rest"
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	endpointstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	volumestore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	claimstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	templatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	accountstore "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// legacyGroup is the core group, v1. What needs a kubelet is left out: logs, exec, attach,
// port forwarding and proxies.
func legacyGroup(storage generic.RESTOptionsGetter, server *Server) (genericapiserver.APIGroupInfo, error) {
	loop := inner{server: server}.config()
	config := corerest.GenericConfig{EventTTL: eventTTL, LoopbackClientConfig: loop}
	group, err := config.NewRESTStorage(served(), storage)
	if err != nil {
		return group, err
	}
	kinds := coreKinds{storage: storage, server: server, loop: loop, into: group.VersionedResourcesStorageMap["v1"]}
	for _, add := range []func() error{kinds.simple, kinds.volumes, kinds.pods, kinds.controllers} {
		if err := add(); err != nil {
			return group, err
		}
	}
	return group, nil
}

// coreKinds adds to the core group.
type coreKinds struct {
	storage generic.RESTOptionsGetter
	server  *Server
	loop    *restclient.Config
	into    map[string]rest.Storage
}

func (k coreKinds) simple() error {
	templates, err := templatestore.NewREST(k.storage)
	if err != nil {
		return err
	}
	limits, err := limitrangestore.NewREST(k.storage)
	if err != nil {
		return err
	}
	endpoints, err := endpointstore.NewREST(k.storage)
	if err != nil {
		return err
	}
	k.into["podtemplates"], k.into["limitranges"], k.into["endpoints"] = templates, limits, endpoints
	return nil
}

func (k coreKinds) volumes() error {
	volumes, volumeStatus, err := volumestore.NewREST(k.storage)
	if err != nil {
		return err
	}
	claims, claimStatus, err := claimstore.NewREST(k.storage)
	if err != nil {
		return err
	}
	k.into["persistentvolumes"], k.into["persistentvolumes/status"] = volumes, volumeStatus
	k.into["persistentvolumeclaims"], k.into["persistentvolumeclaims/status"] = claims, claimStatus
	return nil
}

// pods adds pods and what refers to them.
func (k coreKinds) pods() error {
	nodes, err := nodestore.NewStorage(k.storage, kubeletclient.KubeletClientConfig{}, http.DefaultTransport)
	if err != nil {
		return err
	}
	k.into["nodes"], k.into["nodes/status"] = nodes.Node, nodes.Status
	pods, err := k.podStorage(nodes, k.loop)
	if err != nil {
		return err
	}
	k.into["pods"], k.into["pods/status"] = pods.Pod, pods.Status
	k.into["pods/binding"], k.into["bindings"] = pods.Binding, pods.LegacyBinding
	k.into["pods/ephemeralcontainers"], k.into["pods/resize"] = pods.EphemeralContainers, pods.Resize
	k.into["pods/eviction"] = evictions{pods.Eviction, func(ctx context.Context) (podstore.PodStorage, error) {
		return k.podStorage(nodes, inner{k.server, store.From(ctx)}.config())
	}}
	if err := k.services(pods); err != nil {
		return err
	}
	return k.accounts(pods, nodes)
}

func (k coreKinds) podStorage(nodes *nodestore.NodeStorage, loop *restclient.Config) (podstore.PodStorage, error) {
	budgets, err := policyclient.NewForConfig(loop)
	if err != nil {
		return podstore.PodStorage{}, err
	}
	return podstore.NewStorage(k.storage, nodes.KubeletConnectionInfo, http.DefaultTransport, budgets, byRoles())
}

// evictions is the real registry, which asks for disruption budgets without the context of the
// request, and so without its cluster. Each eviction gets one of its own cluster.
type evictions struct {
	*podstore.EvictionREST
	of func(context.Context) (podstore.PodStorage, error)
}

// Create evicts a pod.
func (e evictions) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (runtime.Object, error) {
	pods, err := e.of(ctx)
	if err != nil {
		return nil, err
	}
	return pods.Eviction.Create(ctx, name, obj, validate, o)
}

func (k coreKinds) accounts(pods podstore.PodStorage, nodes *nodestore.NodeStorage) error {
	webhooks, err := admissionregistrationclient.NewForConfig(k.loop)
	if err != nil {
		return err
	}
	secrets := k.into["secrets"].(rest.Getter)
	accounts, err := accountstore.NewREST(k.storage, tokens{}, audiences(), byRoles(), 0, pods.Pod.Store, secrets, nodes.Node.Store,
		webhooks.ValidatingWebhookConfigurations(), webhooks.MutatingWebhookConfigurations(), false, 0)
	if err != nil {
		return err
	}
	k.into["serviceaccounts"], k.into["serviceaccounts/token"] = accounts, accounts.Token
	return nil
}

func (k coreKinds) controllers() error {
	controllers, err := controllerstore.NewStorage(k.storage)
	if err != nil {
		return err
	}
	k.into["replicationcontrollers"], k.into["replicationcontrollers/status"] = controllers.Controller, controllers.Status
	k.into["replicationcontrollers/scale"] = controllers.Scale
	return nil
}
