package apiserver

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// plugin is one of the real server's. The real server has one that looks at caches; here each
// request makes one that looks at its cluster.
type plugin struct {
	*admission.Handler
	name    string
	plugins *admission.Plugins
	kinds   []string // "pods", "ingresses.networking.k8s.io"
}

func newPlugin(name string, register func(*admission.Plugins), kinds ...string) plugin {
	plugins := admission.NewPlugins()
	register(plugins)
	return plugin{admission.NewHandler(admission.Create, admission.Update, admission.Delete), name, plugins, kinds}
}

var (
	_ admission.MutationInterface   = plugin{}
	_ admission.ValidationInterface = plugin{}
)

// of returns the plugin for a request, nil if it has nothing to say.
func (p plugin) of(ctx context.Context, a admission.Attributes) (admission.Interface, error) {
	if !slices.Contains(p.kinds, a.GetResource().GroupResource().String()) {
		return nil, nil
	}
	made, err := p.plugins.InitPlugin(p.name, nil, inCluster{store.From(ctx)})
	if err != nil || !made.Handles(a.GetOperation()) {
		return nil, err
	}
	return made, nil
}

// Admit lets the real plugin change an object.
func (p plugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	made, err := p.of(ctx, a)
	if err != nil {
		return err
	}
	mutating, ok := made.(admission.MutationInterface)
	if !ok {
		return nil
	}
	pod, isPod := a.GetObject().(*api.Pod)
	if !isPod {
		return mutating.Admit(ctx, a, o)
	}
	given := len(pod.Spec.Volumes)
	err = mutating.Admit(ctx, a, o)
	if len(pod.Spec.Volumes) > given {
		renameTokenVolume(store.From(ctx), pod)
	}
	return err
}

// Validate lets the real plugin refuse an object.
func (p plugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	made, err := p.of(ctx, a)
	if err != nil {
		return err
	}
	if validating, ok := made.(admission.ValidationInterface); ok {
		return validating.Validate(ctx, a, o)
	}
	return nil
}

// renameTokenVolume gives the volume that was added to a pod for its token a name that is the
// same in equal runs.
func renameTokenVolume(db *store.DB, pod *api.Pod) {
	volume := &pod.Spec.Volumes[len(pod.Spec.Volumes)-1]
	old, fresh := volume.Name, serviceaccount.ServiceAccountVolumeName+"-"+suffix(db.Serial())
	volume.Name = fresh
	for _, containers := range [][]api.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for i := range c.VolumeMounts {
				if c.VolumeMounts[i].Name == old {
					c.VolumeMounts[i].Name = fresh
				}
			}
		}
	}
}

// inCluster shows plugins the objects of one cluster where they expect informers and a client.
type inCluster struct{ db *store.DB }

// Initialize gives a plugin what it wants.
func (w inCluster) Initialize(p admission.Interface) {
	if p, ok := p.(initializer.WantsFeatures); ok {
		p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	}
	if p, ok := p.(initializer.WantsExternalKubeInformerFactory); ok {
		p.SetExternalKubeInformerFactory(informersOf(w.db))
	}
	if p, ok := p.(initializer.WantsExternalKubeClientSet); ok {
		p.SetExternalKubeClientSet(pluginClient{})
	}
	if p, ok := p.(interface{ SetReadyFunc(admission.ReadyFunc) }); ok {
		p.SetReadyFunc(func() bool { return true })
	}
}

// pluginObjects are the objects that plugins look up.
//
//arch:state it names a computation; its results are kept in each cluster
var pluginObjects = store.NewMemo(func(rows []store.Stored) []runtime.Object {
	var all []runtime.Object
	for _, r := range rows {
		all = append(all, decodeStored(r))
	}
	return all
}, "/serviceaccounts/", "/priorityclasses/", "/storageclasses/", "/ingressclasses/", "/namespaces/")

// informersOf returns informers that know a cluster as it is now and never run. Each namespace
// has an account "default", which a controller makes soon after the namespace.
func informersOf(db *store.DB) informers.SharedInformerFactory {
	f := informers.NewSharedInformerFactory(nil, 0)
	accounts := f.Core().V1().ServiceAccounts().Informer().GetIndexer()
	given := pluginObjects.Of(db)
	for _, o := range given {
		if ns, ok := o.(*corev1.Namespace); ok {
			add(accounts, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: serviceaccount.DefaultServiceAccountName}})
		}
	}
	for _, o := range given {
		switch o.(type) {
		case *corev1.ServiceAccount:
			add(accounts, o)
		case *schedulingv1.PriorityClass:
			add(f.Scheduling().V1().PriorityClasses().Informer().GetIndexer(), o)
		case *storagev1.StorageClass:
			add(f.Storage().V1().StorageClasses().Informer().GetIndexer(), o)
		case *networkingv1.IngressClass:
			add(f.Networking().V1().IngressClasses().Informer().GetIndexer(), o)
		}
	}
	return f
}

func add(to cache.Indexer, o runtime.Object) {
	if err := to.Add(o); err != nil {
		panic(err) // it has metadata
	}
}

// pluginClient is for plugins that do not trust their informer when it lacks something. Ours
// lacks nothing. It implements of wide interfaces what they call.
type pluginClient struct{ kubernetes.Interface }

// CoreV1 is the only group that is asked.
func (pluginClient) CoreV1() corev1client.CoreV1Interface { return coreClient{} }

type coreClient struct{ corev1client.CoreV1Interface }

func (coreClient) ServiceAccounts(string) corev1client.ServiceAccountInterface {
	return accountClient{}
}

type accountClient struct {
	corev1client.ServiceAccountInterface
}

func (accountClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.ServiceAccount, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
}

// Namespaces is asked for namespaces that an informer lacks.
func (coreClient) Namespaces() corev1client.NamespaceInterface { return namespaceClient{} }

type namespaceClient struct {
	corev1client.NamespaceInterface
}

// Get finds none.
func (namespaceClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}
