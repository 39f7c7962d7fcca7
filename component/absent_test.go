package component_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/health/cel"
	"github.com/trimtab-dev/trimtab/testenv"
)

// gateways and certificates are kinds whose controllers do not run.
func gateways() schema.GroupKind {
	return schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}
}

func certificates() schema.GroupKind {
	return schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
}

// withIdle installs the kinds whose controllers do not run. Like that of the Gateway API, the definition of
// Gateways has conditions by default.
func (b *bench) withIdle() *bench {
	b.t.Helper()
	gateway := plain(gateways())
	annotate(gateway, "api-approved.kubernetes.io", "unapproved, for tests")
	versions, _, _ := unstructured.NestedSlice(gateway.Object, "spec", "versions")
	status := map[string]any{
		"type": "object", "x-kubernetes-preserve-unknown-fields": true,
		"default": map[string]any{"conditions": []any{map[string]any{
			"type": "Programmed", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller", "lastTransitionTime": "1970-01-01T00:00:00Z",
		}}},
	}
	if err := unstructured.SetNestedMap(versions[0].(map[string]any), status, "schema", "openAPIV3Schema", "properties", "status"); err != nil {
		b.t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(gateway.Object, versions, "spec", "versions"); err != nil {
		b.t.Fatal(err)
	}
	testenv.Install(b.t, b.cfg, gateway, plain(certificates()))
	return b
}

// manifest reads an object from a file in testdata/health, with the annotations of this operator.
func (b *bench) manifest(name string) *unstructured.Unstructured {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "health", name))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.manifests(strings.ReplaceAll(string(data), "pages.example.org/", b.operator+"/"))[0]
}

// gateway returns a Gateway.
func gateway(name string, annotations ...string) *unstructured.Unstructured {
	return object(gateways().Group+"/v1", gateways().Kind, name, map[string]any{"spec": map[string]any{"gatewayClassName": "nobody.example.org"}}, annotations...)
}

// TestAbsent: what some clusters never provide is not waited for.
func TestAbsent(t *testing.T) {
	t.Parallel()
	spec := func(fields string) map[string]any {
		out := map[string]any{}
		if err := yaml.Unmarshal([]byte(fields), &out); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"spec": out}
	}
	for name, test := range map[string]struct {
		why string
		obj *unstructured.Unstructured
	}{
		"Ingress": {"nobody publishes an address", object("networking.k8s.io/v1", "Ingress", "x", spec("{ingressClassName: nobody.example.org, defaultBackend: {service: {name: a, port: {number: 80}}}}"))},
		"Gateway": {"its condition Programmed is the default of its definition", gateway("x")},
		"HorizontalPodAutoscaler": {"nobody writes its conditions, or there are no metrics", object("autoscaling/v2", "HorizontalPodAutoscaler", "x", spec(`{maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x},
			metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}`))},
		"PodDisruptionBudget": {"nobody observes it", object("policy/v1", "PodDisruptionBudget", "x", spec("{minAvailable: 1, selector: {matchLabels: {app: x}}}"))},
		"Service":             {"nobody gives it an address", object("v1", "Service", "x", spec("{type: LoadBalancer, loadBalancerClass: example.org/nobody, ports: [{port: 80}]}"))},
		"Certificate":         {"nobody writes its status", object(certificates().Group+"/v1", certificates().Kind, "x", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t).withIdle()
			objects := []client.Object{test.obj}
			if name == "HorizontalPodAutoscaler" { // otherwise its controller says that it has no target
				objects = append(objects, object("apps/v1", "Deployment", "x", spec(`{replicas: 1, selector: {matchLabels: {app: x}},
					template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 100m}}}]}}}`)))
			}
			b.create(objects...)
			t.Log(test.why)
			b.ready()
			b.requests.Reset()
			b.fence()
			if sent := b.sent(); sent.Dependents != 0 {
				t.Errorf("%s: %v", test.why, sent)
			}
		})
	}
}

// TestWaitForMore: hints and rules wait for what kstatus does not know. The manifests are those of docs/health.md.
func TestWaitForMore(t *testing.T) {
	t.Parallel()
	const address = `{"loadBalancer":{"ingress":[{"hostname":"front.example.org"}]}}`
	t.Run("a hint", func(t *testing.T) {
		t.Parallel()
		b := newBench(t).withIdle()
		b.create(gateway("x", b.key("status-hint"), "conditions=Programmed"))
		b.awaits("Gateway x: it has condition Programmed Unknown: Waiting for controller")
		b.status(gateway("x"), `{"conditions":[{"type":"Programmed","status":"True"}]}`)
		b.ready()
	})
	t.Run("a rule of an object", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *options) { o.HealthCompiler = cel.Compiler{} })
		front := b.manifest("ingress.yaml")
		b.create(front)
		b.exists(b.in(front.DeepCopy()))
		b.status(front, address)
		b.ready()
	})
	t.Run("rules of kinds", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, waitForMore).withIdle()
		front := object("networking.k8s.io/v1", "Ingress", "x", b.manifest("ingress.yaml").Object)
		front.SetAnnotations(nil)
		certificate := object(certificates().Group+"/v1", certificates().Kind, "x", nil)
		b.create(front, certificate)
		b.exists(b.in(front.DeepCopy()))
		b.status(front, address)
		b.awaits(`Certificate x: it is not ready until status.?conditions.orValue([]).exists(c, c.type == "Ready" && c.status == "True")`)
		b.status(certificate, `{"conditions":[{"type":"Ready","status":"True"}]}`)
		b.ready()
	})
}

// TestClaimForLater: a claim that is bound when somebody uses it can be exempted.
func TestClaimForLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *options) { o.HealthCompiler = cel.Compiler{} })
	claim := b.manifest("claim.yaml")
	if err := unstructured.SetNestedField(claim.Object, "nobody.example.org", "spec", "storageClassName"); err != nil {
		t.Fatal(err)
	}
	b.create(claim, configMap("later", "1", b.key("apply-order"), "1"))
	b.ready()
	strict := claim.DeepCopy()
	strict.SetName("strict")
	strict.SetAnnotations(nil)
	b.change(claim, strict, configMap("beside", "1"), configMap("later", "1", b.key("apply-order"), "1"))
	b.awaits("PersistentVolumeClaim strict: it is not bound to a volume")
	b.exists(b.in(object("v1", "ConfigMap", "beside", nil))) // it is in the same wave
}
