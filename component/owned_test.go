package component_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

// ownedCase is a dependent with a field that a controller owns by design.
type ownedCase struct {
	resource string
	// object is the manifest, whose field is empty.
	object *unstructured.Unstructured
	// field is the place of what the controller writes.
	field func(live *unstructured.Unstructured) any
	// control does what the controller does.
	control func(b *bench, live *unstructured.Unstructured)
}

// TestControllerOwned: what controllers own by design is left to them without an annotation.
func TestControllerOwned(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"ssa-override", "ssa-merge", "replace", "recreate"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := prepareBench(t)
			b.start()
			cases := ownedCases(b)
			if policy == "recreate" {
				delete(cases, "conversion") // its objects would be lost
			}
			objects := func(version string) []client.Object {
				var out []client.Object
				for _, c := range cases {
					u := c.object.DeepCopy()
					annotate(u, b.key("update-policy"), policy, "version", version)
					out = append(out, u)
				}
				return out
			}
			b.create(objects("1")...)
			b.patchStatusOf(b.in(object("v1", "Service", "web", nil)), `{"status":{"loadBalancer":{"ingress":[{"ip":"198.51.100.7"}]}}}`)
			b.bind()
			b.ready()
			b.requests.Reset()
			written := map[string]any{}
			for name, c := range cases {
				c.control(b, b.exists(c.object.DeepCopy()))
				written[name] = c.field(b.exists(c.object.DeepCopy()))
			}
			b.fence()
			b.ready()
			b.untouchedFields(cases, written, 0)
			if policy != "recreate" { // a change makes new objects
				b.requests.Reset()
				b.change(objects("2")...)
				b.ready()
				b.untouchedFields(cases, written, 1)
			}
			b.delete()
			b.gone()
		})
	}
}

// untouchedFields checks what controllers wrote, and how often the operator wrote each object.
func (b *bench) untouchedFields(cases map[string]ownedCase, want map[string]any, writes int) {
	b.t.Helper()
	for name, c := range cases {
		live := b.exists(c.object.DeepCopy())
		if diff := cmp.Diff(want[name], c.field(live)); diff != "" || want[name] == nil {
			b.t.Errorf("%s: the field (-want +got):\n%s", name, diff)
		}
		if got := b.requests.Writes(c.resource, live.GetNamespace(), live.GetName()); len(got) != writes {
			b.t.Errorf("%s: %d writes, want %d: %v", name, len(got), writes, got)
		}
	}
}

func ownedCases(b *bench) map[string]ownedCase {
	bundle := certificateFor(b.t, "hook").bundle
	hook := func(ca string) map[string]any {
		return map[string]any{"webhooks": []any{map[string]any{
			"name": "hook.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
			"clientConfig": map[string]any{"url": "https://127.0.0.1:1/", "caBundle": ca},
		}}}
	}
	hookField := func(live *unstructured.Unstructured) any {
		hooks, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
		return nested(hooks[0], "clientConfig", "caBundle")
	}
	inject := func(path string) func(b *bench, live *unstructured.Unstructured) {
		return func(b *bench, live *unstructured.Unstructured) { b.set("cert-manager-cainjector", live, path, bundle) }
	}
	crd := plain(b.baz())
	crd.Object["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/", "caBundle": ""},
	}}
	return map[string]ownedCase{
		"aggregated role": {
			resource: "clusterroles",
			object: object("rbac.authorization.k8s.io/v1", "ClusterRole", b.namespace, map[string]any{
				"rules":           []any{},
				"aggregationRule": map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{"aggregate": b.namespace}}}},
			}),
			field:   func(live *unstructured.Unstructured) any { return nested(live.Object, "rules") },
			control: func(b *bench, live *unstructured.Unstructured) { b.aggregateRole(live) },
		},
		"validating webhook": {
			resource: "validatingwebhookconfigurations", field: hookField, control: inject("/webhooks/0/clientConfig/caBundle"),
			object: object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace, hook("")),
		},
		"mutating webhook": {
			resource: "mutatingwebhookconfigurations", field: hookField, control: inject("/webhooks/0/clientConfig/caBundle"),
			object: object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", b.namespace, hook("Cg==")),
		},
		"conversion": {
			resource: "customresourcedefinitions", object: crd, control: inject("/spec/conversion/webhook/clientConfig/caBundle"),
			field: func(live *unstructured.Unstructured) any {
				return nested(live.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
			},
		},
		"service": {
			resource: "services", control: func(b *bench, live *unstructured.Unstructured) { b.moveNodePort(live) },
			object: b.in(object("v1", "Service", "web", map[string]any{"spec": map[string]any{
				"type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIP": "", "clusterIPs": []any{}, "healthCheckNodePort": int64(0),
				"ports": []any{map[string]any{"port": int64(80), "nodePort": int64(0)}}, "selector": map[string]any{"app": "web"},
			}})),
			field: func(live *unstructured.Unstructured) any {
				ports, _, _ := unstructured.NestedSlice(live.Object, "spec", "ports")
				return []any{nested(ports[0], "nodePort"), nested(live.Object, "spec", "clusterIP"), nested(live.Object, "spec", "clusterIPs"), nested(live.Object, "spec", "healthCheckNodePort")}
			},
		},
		"claim": {
			resource: "persistentvolumeclaims", control: func(*bench, *unstructured.Unstructured) {}, // bind did it
			object: b.in(object("v1", "PersistentVolumeClaim", "data", map[string]any{"spec": map[string]any{
				"volumeName": "", "storageClassName": b.namespace, "accessModes": []any{"ReadWriteOnce"},
				"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
			}})),
			field: func(live *unstructured.Unstructured) any { return nested(live.Object, "spec", "volumeName") },
		},
	}
}

// nested is a value in decoded JSON; nil if there is none.
func nested(value any, path ...string) any {
	fields, _ := value.(map[string]any)
	value, _, _ = unstructured.NestedFieldCopy(fields, path...)
	return value
}

// set writes one value as a field manager.
func (b *bench) set(manager string, live *unstructured.Unstructured, path string, value any) {
	b.t.Helper()
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": path, "value": value}})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.as(manager).Patch(b.t.Context(), live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}

// patchStatusOf waits for an object and merges a body into its status.
func (b *bench) patchStatusOf(u *unstructured.Unstructured, body string) {
	b.t.Helper()
	if err := b.admin.Status().Patch(b.t.Context(), b.exists(u), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// aggregateRole makes a role that is aggregated into another, and waits for the controller.
func (b *bench) aggregateRole(live *unstructured.Unstructured) {
	b.t.Helper()
	part := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace + "-part", Labels: map[string]string{"aggregate": b.namespace}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	if err := b.admin.Create(b.t.Context(), part); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.admin.Delete(context.WithoutCancel(b.t.Context()), part) })
	testenv.Wait(b.t, b.admin, live, "aggregated", func(u *unstructured.Unstructured) bool {
		rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
		return len(rules) > 0
	})
}

// moveNodePort has a Service answer at another port of the nodes: any that is free.
func (b *bench) moveNodePort(live *unstructured.Unstructured) {
	b.t.Helper()
	for port := int64(32700); ; port-- {
		u := live.DeepCopy()
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		ports[0].(map[string]any)["nodePort"] = port
		u.Object["spec"].(map[string]any)["ports"] = ports
		u.SetManagedFields(nil)
		err := b.as("balancer").Update(b.t.Context(), u)
		if err == nil {
			return
		}
		if !apierrors.IsInvalid(err) {
			b.t.Fatal(err)
		}
	}
}

// bind does what the controller does that binds claims.
func (b *bench) bind() {
	b.t.Helper()
	claim := b.exists(b.in(object("v1", "PersistentVolumeClaim", "data", nil)))
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: b.namespace, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
			ClaimRef:               &corev1.ObjectReference{Namespace: b.namespace, Name: "data", UID: claim.GetUID()},
		},
	}
	if err := b.admin.Create(b.t.Context(), volume); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = b.admin.Delete(context.WithoutCancel(b.t.Context()), volume) })
	b.set("kube-controller-manager", claim, "/spec/volumeName", b.namespace)
	b.patchStatusOf(claim, `{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}}}`)
}

// certificate is one that signs itself.
type certificate struct {
	tls.Certificate

	bundle string // as API objects have it
}

func certificateFor(t *testing.T, host string) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, base64.StdEncoding.EncodeToString(text)}
}

// TestInjectedAPIService: an APIService whose certificate is injected is ready with it, and one whose
// manifest has a certificate gets that.
func TestInjectedAPIService(t *testing.T) {
	t.Parallel()
	cfg := ownCluster(t) // the one that all tests share is behind it
	for _, policy := range []string{"ssa-override", "replace"} {
		t.Run(policy, func(t *testing.T) {
			b := prepareBenchOn(t, cfg)
			b.start()
			kind := schema.GroupKind{Group: b.namespace + ".things.example.org", Kind: "Thing"}
			ca := certificateFor(t, "things."+b.namespace+".svc")
			behind := b.aggregate(kind, ca.Certificate)
			objects := func(bundle, version string) []client.Object {
				service := behind[1].DeepCopyObject().(*unstructured.Unstructured)
				service.Object["spec"].(map[string]any)["caBundle"] = bundle
				annotate(service, b.key("update-policy"), policy, "version", version)
				return []client.Object{behind[0], service}
			}
			writes := func() int {
				return len(b.requests.Writes("apiservices", "", behind[1].GetName()))
			}
			b.create(objects("", "1")...)
			b.waiting("APIService", "Available")
			live := b.exists(behind[1].DeepCopyObject().(*unstructured.Unstructured))
			b.requests.Reset()
			b.set("cert-manager-cainjector", live, "/spec/caBundle", ca.bundle)
			b.ready()
			b.fence()
			if n := writes(); n > 0 {
				t.Errorf("%d writes of what another owns", n)
			}
			b.change(objects("", "2")...)
			b.ready()
			if n := writes(); n != 1 {
				t.Errorf("%d writes for a change", n)
			}
			b.hasBundle(live, ca.bundle)
			b.change(objects(ca.bundle, "3")...)
			b.ready()
			b.set("them", live, "/spec/caBundle", certificateFor(t, "other").bundle)
			b.hasBundle(live, ca.bundle)
			b.delete()
			b.gone()
		})
	}
}

// hasBundle waits until an APIService has a certificate.
func (b *bench) hasBundle(live *unstructured.Unstructured, want string) {
	b.t.Helper()
	testenv.Wait(b.t, b.admin, live, "the certificate", func(u *unstructured.Unstructured) bool { return nested(u.Object, "spec", "caBundle") == want })
}

// TestGivenBundle: a certificate of the manifest is enforced, and handed over when the manifest no longer
// has one.
func TestGivenBundle(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"ssa-override", "ssa-merge", "replace", "recreate"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ours, theirs := certificateFor(t, "ours").bundle, certificateFor(t, "theirs").bundle
			cases := ownedCases(b)
			hook := func(bundle string) *unstructured.Unstructured {
				u := cases["validating webhook"].object.DeepCopy()
				nested := u.Object["webhooks"].([]any)[0].(map[string]any)
				nested["clientConfig"].(map[string]any)["caBundle"] = bundle
				annotate(u, b.key("update-policy"), policy)
				return u
			}
			has := func(why, want string) {
				t.Helper()
				testenv.Wait(t, b.admin, hook(""), why, func(u *unstructured.Unstructured) bool { return cases["validating webhook"].field(u) == want })
			}
			b.create(hook(ours))
			b.ready()
			b.set("them", b.exists(hook("")), "/webhooks/0/clientConfig/caBundle", theirs)
			has("ours again", ours)
			if policy != "recreate" {
				b.change(hook(""))
				b.ready()
				has("the last value stays until another writes one", ours)
				b.requests.Reset()
				b.set("them", b.exists(hook("")), "/webhooks/0/clientConfig/caBundle", theirs)
				b.fence()
				has("theirs", theirs)
				if writes := b.requests.Writes("validatingwebhookconfigurations", "", b.namespace); len(writes) > 0 {
					t.Errorf("what another owns was written: %v", writes)
				}
			}
			b.delete()
			b.gone()
		})
	}
}

// TestAutoscaled: an autoscaler among the dependents has the replicas of what it scales.
func TestAutoscaled(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"ssa-override", "ssa-merge", "replace", "recreate"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			web := func(replicas *int32, version string) *appsv1.Deployment {
				d := policyOf(b, deployment("web", "a"), policy)
				d.Spec.Replicas = replicas
				annotate(d, "version", version)
				return d
			}
			b.create(web(new(int32(1)), "1"), scaler("web"))
			b.scalerWorks("web")
			b.ready()
			b.hasReplicas(1)
			b.requests.Reset()
			b.scaleTo(2)
			b.fence()
			b.ready()
			b.hasReplicas(2)
			b.wroteWeb(0)
			if policy != "recreate" {
				b.change(web(new(int32(1)), "2"), scaler("web"))
				b.ready()
				b.hasReplicas(2)
				b.wroteWeb(1)
				b.change(web(nil, "3"), scaler("web"))
				b.ready()
				b.hasReplicas(2)
				b.wroteWeb(2)
			}
			b.change(web(new(int32(1)), "3"))
			testenv.Wait(t, b.admin, b.scaled(), "the replicas of the manifest", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
			b.delete()
			b.gone()
		})
	}
}

func policyOf[T client.Object](b *bench, o T, name string) T {
	return policy(b, o, "update-policy", name)
}

// scaler is an autoscaler of a Deployment.
func scaler(name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 5,
		},
	}
}

// scalerWorks has an autoscaler say that it works, as its controller would.
func (b *bench) scalerWorks(name string) {
	b.t.Helper()
	b.patchStatusOf(b.in(object("autoscaling/v2", "HorizontalPodAutoscaler", name, nil)),
		`{"status":{"currentReplicas":1,"desiredReplicas":1,"conditions":[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"True"}]}}`)
}

func (b *bench) scaled() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
}

// scaleTo does what the controller of autoscalers does.
func (b *bench) scaleTo(replicas int32) {
	b.t.Helper()
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	err := b.admin.SubResource("scale").Update(b.t.Context(), b.scaled(), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager"))
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) hasReplicas(want int32) {
	b.t.Helper()
	d := b.scaled()
	if err := b.admin.Get(b.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		b.t.Fatal(err)
	}
	if *d.Spec.Replicas != want {
		b.t.Errorf("%d replicas, want %d", *d.Spec.Replicas, want)
	}
}

// wroteWeb fails the test unless the Deployment was written so often.
func (b *bench) wroteWeb(want int) {
	b.t.Helper()
	if writes := b.requests.Writes("deployments", b.namespace, "web"); len(writes) != want {
		b.t.Errorf("%d writes of the Deployment, want %d: %v", len(writes), want, writes)
	}
}

// TestClusterAutoscaler: an autoscaler that is none of the dependents has the replicas of what it scales, too.
func TestClusterAutoscaler(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"ssa-override", "ssa-merge", "replace", "recreate"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			web := func(version string) *appsv1.Deployment {
				d := policyOf(b, deployment("web", "a"), policy)
				d.Spec.Replicas = new(int32(1))
				annotate(d, "version", version)
				return d
			}
			b.create(web("1"))
			b.ready()
			if watched := b.scalerRequests(); len(watched) > 0 {
				t.Errorf("autoscalers were asked for although nobody scaled anything: %v", watched)
			}
			made := b.scaled()
			uid(b, made)
			theirs := scaler("web")
			theirs.Namespace = b.namespace
			if err := b.admin.Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			b.requests.Reset()
			b.scaleTo(2)
			within(t, "the replicas are left to the autoscaler", func() bool {
				return slices.ContainsFunc(b.requests.Writes("deployments", b.namespace, "web"), func(r testenv.Request) bool { return r.Code == http.StatusOK })
			})
			b.fence()
			b.ready()
			b.hasReplicas(2)
			b.requests.Reset()
			b.scaleTo(3)
			b.fence()
			b.ready()
			b.hasReplicas(3)
			b.wroteWeb(0)
			if policy != "recreate" {
				b.change(web("2"))
				b.ready()
				b.hasReplicas(3)
				b.wroteWeb(1)
			}
			if policy == "replace" { // a replacement without replicas would set them to 1
				without := web("3")
				without.Spec.Replicas = nil
				b.change(without)
				b.ready()
				b.hasReplicas(3)
				b.change(web("4"))
				b.ready()
				b.hasReplicas(3)
			}
			b.stop()
			b.start()
			b.fence()
			b.hasReplicas(3)
			if now := b.scaled(); uid(b, now) != made.UID {
				t.Error("the Deployment was created again")
			}
			if err := b.admin.Delete(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			enforced := func() {
				t.Helper()
				testenv.Wait(t, b.admin, b.scaled(), "the replicas of the manifest", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
			}
			enforced()
			b.ready()
			b.scaleTo(2) // as kubectl does
			enforced()
			b.delete()
			b.gone()
		})
	}
	t.Run("not allowed to list them", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if !strings.Contains(r.URL.Path, "/horizontalpodautoscalers") {
					return next.RoundTrip(r)
				}
				r = r.Clone(r.Context())
				r.Header.Set("Impersonate-User", "nobody") // who is forbidden everything
				return next.RoundTrip(r)
			})
		})
		b.start()
		d := deployment("web", "a")
		d.Spec.Replicas = new(int32(1))
		b.create(d)
		b.ready()
		theirs := scaler("web")
		theirs.Namespace = b.namespace
		if err := b.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for i := range 3 {
			b.scaleTo(2)
			testenv.Wait(t, b.admin, b.scaled(), "the replicas of the manifest", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
			b.fence()
			if all := b.scalerRequests(); i == 0 {
				asked = len(all) // in all namespaces, and in this one
			} else if len(all) != asked {
				t.Errorf("autoscalers were asked for again: %v", all)
			}
		}
	})
}

// scalerRequests are what the operator asked about autoscalers.
func (b *bench) scalerRequests() []testenv.Request {
	return b.requests.Select(func(r testenv.Request) bool { return r.Resource == "horizontalpodautoscalers" })
}
