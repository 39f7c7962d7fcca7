package desired_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// TestOwnedFields: what controllers own by design is not in the manifest that is applied.
func TestOwnedFields(t *testing.T) {
	const (
		hooks   = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: `
		crd     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.org}, spec: {group: example.org, names: {kind: Foo}, scope: Namespaced, versions: [{name: v1, served: true}]`
		service = `{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}, spec: `
		role    = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}`
		served  = `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.example.org}, spec: {group: example.org, version: v1`
		claim   = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: shop}, spec: `
	)
	for name, tc := range map[string]struct {
		why           string
		in, want      string
		ignored, left []string
	}{
		"aggregated role": {
			why:     "charts ship it with rules: [], and the aggregation controller fills them in",
			in:      role + `, aggregationRule: {clusterRoleSelectors: [{}]}, rules: []}`,
			want:    role + `, aggregationRule: {clusterRoleSelectors: [{}]}}`,
			ignored: []string{"rules"},
		},
		"aggregated role with rules": {
			why:     "the controller overwrites them, whatever they are",
			in:      role + `, aggregationRule: {clusterRoleSelectors: [{}]}, rules: [{verbs: [get]}]}`,
			want:    role + `, aggregationRule: {clusterRoleSelectors: [{}]}}`,
			ignored: []string{"rules"},
		},
		"aggregated role without rules": {
			why: "a replacement must not empty them", in: role + `, aggregationRule: {clusterRoleSelectors: [{}]}}`,
			want: role + `, aggregationRule: {clusterRoleSelectors: [{}]}}`, left: []string{"rules"},
		},
		"role without rules": {
			why: "no controller fills in the rules of a role that is not aggregated", in: role + `, rules: []}`, want: role + `, rules: []}`,
		},
		"webhooks": {
			why:     "each of them by itself: Cg== is the empty certificate of older generators",
			in:      hooks + `[{name: a, clientConfig: {caBundle: ""}}, {name: b, clientConfig: {caBundle: Cg==}}, {name: c, clientConfig: {caBundle: aGVsbG8=}}, {name: d, clientConfig: {url: x}}, {name: e}]}`,
			want:    hooks + `[{name: a, clientConfig: {}}, {name: b, clientConfig: {}}, {name: c, clientConfig: {caBundle: aGVsbG8=}}, {name: d, clientConfig: {url: x}}, {name: e}]}`,
			ignored: []string{"webhooks[name=a].clientConfig.caBundle", "webhooks[name=b].clientConfig.caBundle"},
			left:    []string{"webhooks[name=d].clientConfig.caBundle"},
		},
		"conversion": {
			why:     "the certificate of a conversion webhook is injected, too",
			in:      crd + `, conversion: {strategy: Webhook, webhook: {clientConfig: {caBundle: null}}}}}`,
			want:    crd + `, conversion: {strategy: Webhook, webhook: {clientConfig: {}}}}}`,
			ignored: []string{"spec.conversion.webhook.clientConfig.caBundle"},
		},
		"no conversion": {why: "there is nothing to inject into", in: crd + `}}`, want: crd + `}}`},
		"API service": {
			why:     "as above",
			in:      served + `, caBundle: "", service: {name: a, namespace: b}}}`,
			want:    served + `, service: {name: a, namespace: b}}}`,
			ignored: []string{"spec.caBundle"},
		},
		"API service without verification": {
			why:  "it must not have a certificate",
			in:   served + `, insecureSkipTLSVerify: true, service: {name: a, namespace: b}}}`,
			want: served + `, insecureSkipTLSVerify: true, service: {name: a, namespace: b}}}`,
		},
		"allocated": {
			why:     "0 and empty text ask for an allocation",
			in:      service + `{clusterIP: "", clusterIPs: [""], healthCheckNodePort: 0, ports: [{port: 53, nodePort: 0}, {port: 53, protocol: UDP, nodePort: 30053}]}}`,
			want:    service + `{ports: [{port: 53}, {port: 53, protocol: UDP, nodePort: 30053}]}}`,
			ignored: []string{"spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort", "spec.ports[port=53,protocol=TCP].nodePort"},
		},
		"headless": {
			why: "None is a value", in: service + `{clusterIP: None, clusterIPs: [None]}}`, want: service + `{clusterIP: None, clusterIPs: [None]}}`,
		},
		"claim":       {why: "the volume is whichever is bound", in: claim + `{volumeName: ""}}`, want: claim + `{}}`, ignored: []string{"spec.volumeName"}},
		"bound claim": {why: "it asks for a volume", in: claim + `{volumeName: v}}`, want: claim + `{volumeName: v}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := normalize(t, tc.in)[0]
			want := objects(t, tc.want)[0].(*unstructured.Unstructured).Object
			if diff := cmp.Diff(jsonOf(t, want), jsonOf(t, rendered(t, got))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
			if diff := cmp.Diff([2][]string{tc.ignored, tc.left}, [2][]string{texts(got.Ignored), texts(got.Left)}); diff != "" {
				t.Errorf("%s: ignored and left (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func texts(paths []fingerprint.Path) []string {
	var out []string
	for _, p := range paths {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}

// TestAutoscaled: what an autoscaler of the set scales keeps its replicas.
func TestAutoscaled(t *testing.T) {
	const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}`
	scaler := func(ref string) string {
		return `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {` + ref + `}}}`
	}
	for name, tc := range map[string]struct {
		why, scaler, web string
		left             string // how the replicas are left to it; empty means that they are not
	}{
		"scaled":                   {why: "in any version", scaler: scaler("apiVersion: apps/v1beta1, kind: Deployment, name: web"), left: "initially"},
		"another name":             {why: "it scales something else", scaler: scaler("apiVersion: apps/v1, kind: Deployment, name: other")},
		"another kind":             {why: "it scales something else", scaler: scaler("apiVersion: apps/v1, kind: StatefulSet, name: web")},
		"no group":                 {why: "the core group has no Deployments", scaler: scaler("kind: Deployment, name: web")},
		"another namespace":        {why: "autoscalers scale what is in their namespace", scaler: strings.Replace(scaler("apiVersion: apps/v1, kind: Deployment, name: web"), "{name: web}", "{name: web, namespace: other}", 1)},
		"without replicas":         {why: "a replacement must not set them to 1", scaler: scaler("apiVersion: apps/v1, kind: Deployment, name: web"), web: strings.Replace(web, "replicas: 3", "", 1), left: "always"},
		"KEDA's":                   {why: "it makes an autoscaler", scaler: `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {scaleTargetRef: {name: web}}}`, left: "initially"},
		"KEDA's of a kind":         {why: "its default is a Deployment", scaler: `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {scaleTargetRef: {kind: StatefulSet, apiVersion: apps/v1, name: web}}}`},
		"KEDA's without a version": {why: "its default is apps/v1", scaler: `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {scaleTargetRef: {kind: Deployment, name: web}}}`, left: "initially"},
		"by a broken scaler":       {why: "the API server says what is wrong", scaler: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: web}}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := web
			if tc.web != "" {
				in = tc.web
			}
			o := options()
			o.Scope = func(schema.GroupKind, string) (namespaced, known bool) { return true, true }
			got, err := desired.Normalize(objects(t, in+"\n---\n"+tc.scaler), o)
			if err != nil {
				t.Fatal(err)
			}
			d := got[slices.IndexFunc(got, func(o desired.Object) bool { return o.Item.Kind == "Deployment" })]
			has := func(u *unstructured.Unstructured) bool {
				if u == nil {
					return false
				}
				_, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
				return found && err == nil
			}
			left := slices.Contains(texts(d.Left), "spec.replicas")
			ignored := slices.Contains(texts(d.Ignored), "spec.replicas")
			if has(d.Manifest) != (tc.left == "") || has(d.Initial) != (tc.left == "initially") || ignored != (tc.left == "initially") || left != (tc.left == "always") {
				t.Errorf("%s: replicas in the manifest %t, in the initial one %t; ignored %t, left %t", tc.why, has(d.Manifest), has(d.Initial), ignored, left)
			}
			if d.Initial != nil && d.Initial.GetAnnotations()["op.test/digest"] != d.Item.Digest {
				t.Error("the initial manifest does not have the digest")
			}
		})
	}
}

// TestOwnedFieldsAreDocumented: the table for users has each field.
func TestOwnedFieldsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/components.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for kind, paths := range desired.OwnedFields() {
		for _, path := range paths {
			if !slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, "`"+kind+"`") && strings.Contains(line, "`"+path+"`")
			}) {
				t.Errorf("docs/components.md has no row with %s of %s", path, kind)
			}
		}
	}
}

// TestTwins: the digest with which an object is known whose replicas an autoscaler of somebody else has.
func TestTwins(t *testing.T) {
	deployment := func(annotations, spec string) desired.Object {
		return normalize(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {`+annotations+`}}, spec: {`+spec+`}}`)[0]
	}
	for name, tc := range map[string]struct {
		why       string
		got, want desired.Object
	}{
		"replicas":  {"it is that of the manifest without them", deployment("", "replicas: 3").Autoscaled("op.test"), deployment("", "")},
		"ignored":   {"they are left to others anyway", deployment("op.test/ignore: /spec/replicas", "replicas: 3"), deployment("op.test/ignore: /spec/replicas", "replicas: 3")},
		"initially": {"a new object gets them all the same", deployment("op.test/ignore-after-creation: /spec/paused", "paused: true, replicas: 3").Autoscaled("op.test"), deployment("", "")},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got.Item.Digest != tc.want.Item.Digest {
				t.Errorf("%s: digests %s and %s", tc.why, tc.got.Item.Digest, tc.want.Item.Digest)
			}
			if diff := cmp.Diff(tc.want.Manifest, tc.got.Manifest); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
	scaled := deployment("", "replicas: 3").Autoscaled("op.test")
	if n, found, err := unstructured.NestedInt64(scaled.Initial.Object, "spec", "replicas"); n != 3 || !found || err != nil {
		t.Errorf("a new object has %d replicas, want 3", n)
	}
	if again := scaled.Twin; again != deployment("", "replicas: 3").Item.Digest {
		t.Error("the twin of the twin is another object")
	}
	for why, o := range map[string]desired.Object{
		"it is ignored":              deployment("op.test/ignore: /spec/replicas", "replicas: 3"),
		"it is never written again":  deployment("op.test/reconcile-policy: once", "replicas: 3"),
		"an apply leaves them alone": deployment("op.test/update-policy: ssa-merge", ""),
	} {
		if o.Twin != "" {
			t.Errorf("an object has a twin although %s", why)
		}
	}
	if o := deployment("", ""); o.Twin != o.Item.Digest || !slices.Contains(texts(o.Autoscaled("op.test").Left), "spec.replicas") {
		t.Error("a replacement would set replicas that the manifest does not have")
	}
}
