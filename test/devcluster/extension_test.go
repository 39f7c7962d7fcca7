package devcluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func quantities(name corev1.ResourceName, amount string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(amount)}
}

// serveTLS serves on loopback with a certificate of its own for the names, and
// answers it as a CA bundle.
func serveTLS(t *testing.T, handler http.Handler, clients *x509.CertPool, names ...string) (port int32, bundle []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	if clients != nil {
		server.TLS.ClientCAs, server.TLS.ClientAuth = clients, tls.RequireAndVerifyClientCert
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	addr, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listens on %v", server.Listener.Addr())
	}
	return int32(addr.Port), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// loopbackService is a Service that leads to this machine.
func loopbackService(t *testing.T, ns, name string) {
	t.Helper()
	_, err := shared(t).kube.CoreV1().Services(ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// admit refuses objects that have the label refuse=me.
func admit(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	var o metav1.PartialObjectMetadata
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(review.Request.Object.Raw, &o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: o.Labels["refuse"] != "me"}
	if !review.Response.Allowed {
		review.Response.Result = &metav1.Status{Message: "the webhook does not like it"}
	}
	_ = json.NewEncoder(w).Encode(review)
}

func TestAdmissionWebhookOnLoopback(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    string
		client func(t *testing.T, ns string, port int32) admissionregistrationv1.WebhookClientConfig
	}{
		"by URL": {
			why: "what a test of an operator does",
			client: func(_ *testing.T, _ string, port int32) admissionregistrationv1.WebhookClientConfig {
				return admissionregistrationv1.WebhookClientConfig{URL: new(fmt.Sprintf("https://127.0.0.1:%d/", port))}
			},
		},
		"by Service": {
			why: "what the operator's own manifests say",
			client: func(t *testing.T, ns string, port int32) admissionregistrationv1.WebhookClientConfig {
				loopbackService(t, ns, "hook")
				return admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: ns, Name: "hook", Port: &port},
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t)
			ns := c.namespace(t)
			port, bundle := serveTLS(t, http.HandlerFunc(admit), nil, "hook."+ns+".svc")
			client := tc.client(t, ns, port)
			client.CABundle = bundle
			installWebhook(t, ns, client)
			eventually(t, "the webhook refuses; "+tc.why, func(ctx context.Context) error {
				return c.wantRefused(ctx, ns, map[string]string{"refuse": "me"}, "the webhook does not like it")
			})
			c.configMap(t, ns, "fine")
		})
	}
}

func installWebhook(t *testing.T, ns string, client admissionregistrationv1.WebhookClientConfig) {
	t.Helper()
	api := shared(t).kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := api.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "hook.devcluster.test",
			ClientConfig:            client,
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), ns, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// wantRefused tries to create a ConfigMap and wants admission to refuse it.
func (c *cluster) wantRefused(ctx context.Context, ns string, labels map[string]string, message string) error {
	_, err := c.kube.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "refused-", Labels: labels},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return errors.New("it was admitted")
	}
	if !strings.Contains(err.Error(), message) {
		return fmt.Errorf("refused for another reason: %w", err)
	}
	return nil
}

func TestValidatingAdmissionPolicy(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	api := c.kube.AdmissionregistrationV1()
	if _, err := api.ValidatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: `!has(object.metadata.labels) || !("forbidden" in object.metadata.labels)`,
				Message:    "the policy does not like it",
			}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        ns,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy refuses", func(ctx context.Context) error {
		return c.wantRefused(ctx, ns, map[string]string{"forbidden": ""}, "the policy does not like it")
	})
	c.configMap(t, ns, "fine")
}

// fruits is an aggregated API server with one resource, which says whom the
// front proxy vouches for.
func fruits(w http.ResponseWriter, r *http.Request) {
	const base = "/apis/fruit.devcluster.test/v1"
	var answer any
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case base:
		answer = metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "fruit.devcluster.test/v1",
			APIResources: []metav1.APIResource{{Name: "apples", SingularName: "apple", Kind: "Apple", Verbs: metav1.Verbs{"get"}}},
		}
	case base + "/apples/red":
		answer = map[string]any{
			"apiVersion": "fruit.devcluster.test/v1", "kind": "Apple",
			"metadata": map[string]any{"name": "red", "annotations": map[string]string{
				"user":  r.Header.Get("X-Remote-User"),
				"group": r.Header.Get("X-Remote-Group"),
				"proxy": r.TLS.PeerCertificates[0].Subject.CommonName,
			}},
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	published, err := c.kube.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	frontProxy := x509.NewCertPool()
	if !frontProxy.AppendCertsFromPEM([]byte(published.Data["requestheader-client-ca-file"])) {
		t.Fatalf("no certificate in what the server publishes: %v", published.Data)
	}
	port, bundle := serveTLS(t, http.HandlerFunc(fruits), frontProxy, "fruit."+ns+".svc")
	loopbackService(t, ns, "fruit")
	const name = "v1.fruit.devcluster.test"
	if _, err := c.dyn.Resource(apiServices).Create(t.Context(), object(t, fmt.Sprintf(`{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": %q},
		"spec": {
			"group": "fruit.devcluster.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
			"caBundle": %q, "service": {"namespace": %q, "name": "fruit", "port": %d}
		}
	}`, name, base64.StdEncoding.EncodeToString(bundle), ns, port)), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// An API that does not answer any more would hold up the deletion of every
	// namespace.
	t.Cleanup(func() {
		if err := c.dyn.Resource(apiServices).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c.await(t, "the API is available", apiServices, "", name, condition("Available"))

	apples := schema.GroupVersionResource{Group: "fruit.devcluster.test", Version: "v1", Resource: "apples"}
	eventually(t, "the API is served", func(ctx context.Context) error {
		red, err := c.dyn.Resource(apples).Get(ctx, "red", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := red.GetAnnotations()
		if got["user"] != "admin" || got["group"] != "system:masters" || got["proxy"] != "front-proxy-client" {
			t.Errorf("the API server forwarded %v, want the administrator vouched for by the front proxy", got)
		}
		return nil
	})
}
