package apiserver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/network/defaultingressclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodetaint"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// admissionChain is what requests pass between decoding and storage: of the plugins that a
// real server has on by default, those that matter for what operators create, in its order.
// Limits and quotas, runtime classes and pod security are left out.
func admissionChain() admission.Interface {
	return reinvoking{admission.NewChainHandler(
		newNamespaces(),
		newPlugin(serviceaccount.PluginName, serviceaccount.Register, "pods"),
		newPlugin(nodetaint.PluginName, nodetaint.Register, "nodes"),
		newPlugin(priority.PluginName, priority.Register, "pods", "priorityclasses.scheduling.k8s.io"),
		newPlugin(defaulttolerationseconds.PluginName, defaulttolerationseconds.Register, "pods"),
		newPlugin(setdefault.PluginName, setdefault.Register, "persistentvolumeclaims"),
		newPlugin(storageobjectinuseprotection.PluginName, storageobjectinuseprotection.Register, "persistentvolumes", "persistentvolumeclaims"),
		newPlugin(defaultingressclass.PluginName, defaultingressclass.Register, "ingresses.networking.k8s.io"),
		newAdmissionWebhooks(), // mutating ones see no generated name, validating ones do
		newGeneratedNames(), newEventNames(),
	)}
}

// phases are the namespaces of a cluster with their phases.
//
//arch:state it names a computation; its results are kept in each cluster
var phases = store.NewMemo(func(stored []store.Stored) map[string]corev1.NamespacePhase {
	m := map[string]corev1.NamespacePhase{}
	for _, s := range stored {
		if ns, ok := decodeStored(s).(*corev1.Namespace); ok {
			m[ns.Name] = ns.Status.Phase
		}
	}
	return m
}, "/namespaces/")

// namespaces keeps objects out of namespaces that are missing or going. The real plugin works
// on a cache and waits a while for it, which a cluster without delays cannot show; its rules and
// messages are kept.
type namespaces struct{ *admission.Handler }

func newNamespaces() namespaces {
	return namespaces{admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

var _ admission.MutationInterface = namespaces{}

// Admit refuses what the real server would.
func (namespaces) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind() {
		if a.GetOperation() == admission.Delete && immortal(a.GetName()) {
			return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), errors.New("this namespace may not be deleted"))
		}
		return nil
	}
	namespace := a.GetNamespace()
	if namespace == "" || a.GetOperation() == admission.Update || a.GetOperation() == admission.Delete {
		return nil
	}
	phase, exists := phases.Of(store.From(ctx))[namespace]
	switch {
	case !exists:
		return apierrors.NewNotFound(corev1.Resource("namespaces"), namespace)
	case a.GetOperation() == admission.Create && phase == corev1.NamespaceTerminating:
		return terminating(a)
	}
	return nil
}

// immortal tells whether the real server refuses to delete a namespace.
func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

func terminating(a admission.Attributes) error {
	err := admission.NewForbidden(a, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", a.GetNamespace()))
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", a.GetNamespace()),
			Field:   "metadata.namespace",
		})
	}
	return err
}
