package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/natsserver"
	trimtab "github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/samples/nats"
	"github.com/trimtab-dev/trimtab/samples/nats/api/v1alpha1"
)

const (
	// namespace is the namespace of the demo's objects.
	namespace = metav1.NamespaceDefault
	// operatorName is the name of the operator, its namespace and its service account.
	operatorName = "nats-operator"
)

// startCluster starts the control plane. The end of ctx stops it only while it starts, because
// after an interruption the demo still deletes its objects. ended is called when the control
// plane ends.
func (s *stage) startCluster(ctx context.Context, st *steps.Step, ended context.CancelCauseFunc) error {
	life, giveUp := context.WithCancelCause(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, func() { giveUp(context.Cause(ctx)) })
	cluster, err := controlplane.Start(life, controlplane.Options{
		AuditLog: s.file("audit.log"),
		Progress: func(p controlplane.Step) { st.Note(p.String()) },
	})
	if err != nil {
		return err
	}
	s.cluster = cluster
	if !started() {
		return context.Cause(ctx)
	}
	go func() {
		why := cluster.Wait()
		if why == nil {
			why = errors.New("the control plane ended")
		}
		ended(endedError{why})
	}()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if s.admin, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	st.Detail("%s   %s", cluster.Version, cluster.URL)
	return nil
}

func (s *stage) startNATS(_ context.Context, st *steps.Step) error {
	server, err := natsserver.Start(natsserver.Options{Dir: s.file("nats"), Answered: s.hook.answered})
	if err != nil {
		return err
	}
	s.nats = server
	if s.client, err = newNATSClient(server); err != nil {
		return err
	}
	st.Detail("%s", server.URL())
	return nil
}

// install applies the manifests that the operator's own binary prints, without the Deployment:
// the operator runs on this machine.
func (s *stage) install(ctx context.Context, st *steps.Step) error {
	objects, err := trimtab.Manifests(nats.Operator(), trimtab.ManifestOptions{})
	if err != nil {
		return err
	}
	crds := 0
	for _, obj := range objects {
		kind := obj.GetObjectKind().GroupVersionKind().Kind
		if kind == "Deployment" {
			continue
		}
		if err := s.apply(ctx, obj); err != nil {
			return fmt.Errorf("apply %s %s: %w", kind, obj.GetName(), err)
		}
		if kind == "CustomResourceDefinition" {
			crds++
		}
	}
	if err := s.served(ctx, objects); err != nil {
		return err
	}
	st.Detail("%d kinds; the role is generated from the operator's controllers", crds)
	return nil
}

func (s *stage) apply(ctx context.Context, obj client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return s.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("trimtab-demo"))
}

// served waits until the API server serves the kinds of all CRDs among objects.
func (s *stage) served(ctx context.Context, objects []client.Object) error {
	for _, obj := range objects {
		if obj.GetObjectKind().GroupVersionKind().Kind != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: obj.GetName()}}
		if err := s.until(ctx, "the CRD "+obj.GetName()+" to be established", func() (bool, error) {
			err := s.admin.Get(ctx, client.ObjectKeyFromObject(crd), crd)
			return established(crd), err
		}); err != nil {
			return err
		}
		if err := s.until(ctx, crd.Spec.Names.Plural+" to be served", func() (bool, error) {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
			list.SetKind(crd.Spec.Names.ListKind)
			return s.admin.List(ctx, list) == nil, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

func (s *stage) startOperator(ctx context.Context, st *steps.Step) error {
	kubeconfig, err := s.account(ctx)
	if err != nil {
		return err
	}
	s.operator = newOperator(s.options.Operator, []string{
		"manager", "--kubeconfig", kubeconfig, "--namespace", operatorName, "--leader-elect=false",
		"--metrics-address", "0", "--health-address", "127.0.0.1:0", "--debug-address", "0",
		"--nats-url", s.nats.URL(), "--drift-interval", "1s", "--trace", "-", "--log-format", "json",
	}, s.print)
	if err := s.operator.start(); err != nil {
		return err
	}
	if err := s.until(ctx, "the operator to be ready", func() (bool, error) { return s.operator.isReady(ctx) }); err != nil {
		return err
	}
	st.Detail("pid %d, ServiceAccount %s/%s", s.operator.pid(), operatorName, operatorName)
	return nil
}

// account writes a kubeconfig with a token of the operator's service account.
func (s *stage) account(ctx context.Context) (string, error) {
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorName, Name: operatorName}}
	if err := s.admin.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("get a token for the operator's service account: %w", err)
	}
	cfg := rest.AnonymousClientConfig(s.cluster.Config)
	c := clientcmdapi.NewConfig()
	c.Clusters["demo"] = &clientcmdapi.Cluster{Server: s.cluster.URL, CertificateAuthorityData: cfg.CAData, CertificateAuthority: cfg.CAFile}
	c.AuthInfos[operatorName] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	c.Contexts["demo"] = &clientcmdapi.Context{Cluster: "demo", AuthInfo: operatorName, Namespace: operatorName}
	c.CurrentContext = "demo"
	file := s.file("operator.kubeconfig")
	return file, clientcmd.WriteToFile(*c, file)
}

// hook calls action when NATS has processed a request that matches, before the answer can reach
// the operator.
type hook struct {
	mu     sync.Mutex
	match  func(natsserver.Call) bool
	action func()
	called bool
}

// arm makes the hook call action once.
func (h *hook) arm(match func(natsserver.Call) bool, action func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.match, h.action, h.called = match, action, false
}

func (h *hook) answered(c natsserver.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.match != nil && !h.called && h.match(c) {
		h.called = true
		h.action()
	}
}

func (h *hook) wasCalled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.called
}
