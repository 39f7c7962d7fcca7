package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// target is the cluster that the operator works on.
type target struct {
	config    *rest.Config
	namespace string // the operator's own namespace
	pod       bool   // the process runs in a pod of the cluster
}

// findCluster finds the cluster in the same order as controller-runtime: --kubeconfig,
// $KUBECONFIG, the pod's own cluster, ~/.kube/config.
func findCluster(s settings) (target, error) {
	if s.kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			namespace, _ := os.ReadFile(podNamespace)
			t := newTarget(config, s.namespace, string(namespace))
			t.pod = true
			return t, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := file.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return target{}, errors.New("no cluster is configured; set --kubeconfig or KUBECONFIG, or run in a pod")
	case err != nil:
		return target{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := file.Namespace()
	if err != nil {
		return target{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return newTarget(config, s.namespace, namespace), nil
}

func newTarget(config *rest.Config, namespaces ...string) target {
	config.QPS = -1 // the API server's priority and fairness limits requests better
	t := target{config: config, namespace: "default"}
	if i := slices.IndexFunc(namespaces, func(n string) bool { return n != "" }); i >= 0 {
		t.namespace = namespaces[i]
	}
	return t
}

// reachable asks the API server for its version.
func (t target) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := discovery.NewDiscoveryClientForConfig(t.config)
	if err != nil {
		return fmt.Errorf("the configuration of the cluster is invalid: %w", err)
	}
	err = client.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s rejects the credentials; renew them in the kubeconfig", t.config.Host)
	}
	return fmt.Errorf("no API server answers at %s; start it, or select another one with --kubeconfig: %w", t.config.Host, err)
}

// served returns an error if the API server does not serve one of kinds. The error says how to
// install the kinds that the operator itself defines.
func (d *design) served(mapper meta.RESTMapper, kinds []schema.GroupVersionKind) error {
	var ours, foreign []string
	for _, kind := range kinds {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case !meta.IsNoMatchError(err):
			return fmt.Errorf("look up %s in the API server: %w", kind.GroupKind(), err)
		case d.resources.defines(kind.GroupKind()):
			ours = append(ours, kind.GroupKind().String()+"/"+kind.Version)
		default:
			foreign = append(foreign, kind.GroupKind().String()+"/"+kind.Version)
		}
	}
	var problems []string
	if len(ours) > 0 {
		problems = append(problems, fmt.Sprintf("the cluster does not have %s; install it with: %s manifests crds | kubectl apply --server-side -f -",
			strings.Join(distinct(ours), ", "), d.options.Name))
	}
	if len(foreign) > 0 {
		problems = append(problems, fmt.Sprintf("the cluster does not have %s; install the CRD first", strings.Join(distinct(foreign), ", ")))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, ", and "))
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
