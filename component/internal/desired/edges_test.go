package desired_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
)

func groupKind(k [2]string) schema.GroupKind { return schema.GroupKind{Group: k[0], Kind: k[1]} }

// server is a workload with its Service, both called hook.
const server = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook}
spec: {template: {metadata: {labels: {app: hook, more: x}}, spec: {serviceAccountName: hook}}}
---
{apiVersion: v1, kind: Service, metadata: {name: hook}, spec: {selector: {app: hook}}}
---
`

// account is a ServiceAccount with permissions, all called hook.
const account = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: hook}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: hook}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: hook}
roleRef: {kind: Role, name: hook}
subjects: [{kind: ServiceAccount, name: hook}]
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: hook}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hook}
roleRef: {kind: ClusterRole, name: hook}
subjects: [{kind: ServiceAccount, name: hook, namespace: shop}, {kind: User, name: me}]
---
`

const webhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, annotations: {}}
webhooks: [{clientConfig: {service: {name: hook, namespace: shop}}}, {clientConfig: {url: "https://x"}}]
---
`

const metrics = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.metrics.example.org}
spec: {group: metrics.example.org, version: v1, service: {name: hook, namespace: shop}}
---
`

const foo = `
{apiVersion: example.org/v1, kind: Foo, metadata: {name: foo}}
---
`

const rbac = "rbac.authorization.k8s.io"

func TestEdges(t *testing.T) {
	converting := strings.Replace(foos, "scope:", "conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: hook, namespace: shop}}}}\n  scope:", 1)
	annotate := func(text, annotations string) string {
		return strings.Replace(text, "annotations: {}", "annotations: {"+annotations+"}", 1)
	}
	for name, tc := range map[string]struct {
		why  string
		in   string
		want map[string]string // needs by key, separated by blanks
	}{
		"namespace": {
			why: "nothing can be created in a namespace that does not exist",
			in:  "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			want: map[string]string{
				"/ConfigMap/shop/a": "/Namespace//shop",
			},
		},
		"definition": {
			why:  "an instance needs its type",
			in:   foos[1:] + foo[1:],
			want: map[string]string{"example.org/Foo/shop/foo": "apiextensions.k8s.io/CustomResourceDefinition//foos.example.org"},
		},
		"conversion": {
			why: "the API server calls the webhook for each instance",
			in:  converting[1:] + server[1:] + foo[1:],
			want: map[string]string{
				"example.org/Foo/shop/foo": "/Service/shop/hook apiextensions.k8s.io/CustomResourceDefinition//foos.example.org apps/Deployment/shop/hook",
			},
		},
		"aggregated API": {
			why: "an APIService without a server breaks discovery, and its instances cannot be created",
			in:  metrics[1:] + server[1:] + "{apiVersion: metrics.example.org/v1, kind: Value, metadata: {name: a}}",
			want: map[string]string{
				"apiregistration.k8s.io/APIService//v1.metrics.example.org": "/Service/shop/hook apps/Deployment/shop/hook",
				"metrics.example.org/Value/shop/a":                          "apiregistration.k8s.io/APIService//v1.metrics.example.org",
			},
		},
		"local API": {
			why:  "an APIService without a service is answered by the API server",
			in:   strings.Replace(metrics[1:], ", service: {name: hook, namespace: shop}", "", 1) + server[1:],
			want: map[string]string{},
		},
		"accounts": {
			why: "a workload crashes without its permissions",
			in:  server[1:] + strings.TrimSuffix(account[1:], "---\n"),
			want: map[string]string{
				"apps/Deployment/shop/hook":        "/ServiceAccount/shop/hook " + rbac + "/ClusterRoleBinding//hook " + rbac + "/RoleBinding/shop/hook",
				rbac + "/RoleBinding/shop/hook":    rbac + "/Role/shop/hook",
				rbac + "/ClusterRoleBinding//hook": rbac + "/ClusterRole//hook",
			},
		},
		"groups of accounts": {
			why: "a binding may name all accounts of a namespace",
			in: server[1:] + `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: all}
roleRef: {kind: ClusterRole, name: view}
subjects: [{kind: Group, name: "system:serviceaccounts:shop"}]`,
			want: map[string]string{"apps/Deployment/shop/hook": rbac + "/RoleBinding/shop/all"},
		},
		"webhook": {
			why: "a webhook without a server blocks what it matches, possibly its own server",
			in:  webhook[1:] + server[1:],
			want: map[string]string{
				"admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook": "/Service/shop/hook apps/Deployment/shop/hook",
			},
		},
		"webhook in another wave": {
			why:  "an explicit order wins over an implicit edge",
			in:   annotate(webhook[1:], `op.test/apply-order: "-1"`) + server[1:],
			want: map[string]string{},
		},
		"webhook deleted later": {
			why:  "as above",
			in:   annotate(webhook[1:], `op.test/delete-order: "1"`) + server[1:],
			want: map[string]string{},
		},
		"webhook needed by its server": {
			why: "an explicit edge wins over an implicit one",
			in: webhook[1:] + strings.Replace(server[1:], "{name: hook}",
				"{name: hook, annotations: {op.test/depends-on: ValidatingWebhookConfiguration/hook}}", 1),
			want: map[string]string{
				"admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook": "/Service/shop/hook",
				"apps/Deployment/shop/hook":                                         "admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook",
			},
		},
		"another Service": {
			why:  "only the workload that answers counts",
			in:   webhook[1:] + strings.Replace(server[1:], "selector: {app: hook}", "selector: {app: other}", 1),
			want: map[string]string{"admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook": "/Service/shop/hook"},
		},
		"no selector": {
			why:  "it selects nothing",
			in:   webhook[1:] + strings.Replace(server[1:], "selector: {app: hook}", "selector: {}", 1),
			want: map[string]string{"admissionregistration.k8s.io/ValidatingWebhookConfiguration//hook": "/Service/shop/hook"},
		},
		"switched off": {
			why: "each class can be switched off",
			in: annotate(webhook[1:], `op.test/implicit-edges: "-backends"`) + foos[1:] +
				`{apiVersion: example.org/v1, kind: Foo, metadata: {name: a, annotations: {op.test/implicit-edges: "-types, -accounts"}}}
---
{apiVersion: example.org/v1, kind: Foo, metadata: {name: b, annotations: {op.test/implicit-edges: "-namespaces"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
` + strings.Replace(server[1:], "{name: hook}", "{name: hook, annotations: {op.test/implicit-edges: none}}", 1) + strings.TrimSuffix(account[1:], "---\n"),
			want: map[string]string{
				"/Service/shop/hook":               "/Namespace//shop",
				"/ServiceAccount/shop/hook":        "/Namespace//shop",
				rbac + "/Role/shop/hook":           "/Namespace//shop",
				rbac + "/RoleBinding/shop/hook":    "/Namespace//shop " + rbac + "/Role/shop/hook",
				rbac + "/ClusterRoleBinding//hook": rbac + "/ClusterRole//hook",
				"example.org/Foo/shop/a":           "/Namespace//shop",
				"example.org/Foo/shop/b":           "apiextensions.k8s.io/CustomResourceDefinition//foos.example.org",
			},
		},
		"explicit": {
			why: "all forms of references",
			in: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {
				op.test/depends-on: "/ConfigMap/other/c,Deployment/d , ClusterRole/e, rbac.authorization.k8s.io/Role//f, Deployment/d"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: e}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: f}}`,
			want: map[string]string{
				"/ConfigMap/shop/a": "/ConfigMap/other/c apps/Deployment/shop/d " + rbac + "/ClusterRole//e " + rbac + "/Role/shop/f",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, o := range normalize(t, strings.TrimSuffix(tc.in, "---\n")) {
				if len(o.Item.DependsOn) > 0 {
					got[o.Item.Key()] = strings.Join(o.Item.DependsOn, " ")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestCanonicalOrder(t *testing.T) {
	in := webhook[1:] + server[1:] + account[1:] + foos[1:] + foo[1:] + metrics[1:] + `
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: a}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: a}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: elsewhere}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: early, annotations: {op.test/apply-order: "-1"}}}`
	type ranks struct{ Apply, Delete int }
	want := map[string]ranks{
		"Namespace": {-4, 3}, "MutatingWebhookConfiguration": {-3, 1}, "CustomResourceDefinition": {-2, -1},
		"IngressClass": {-2, 4}, "RuntimeClass": {-2, 4}, "PriorityClass": {-2, 4}, "StorageClass": {-2, 4},
		"ClusterRole": {-2, 0}, "Role": {-2, 0}, "ConfigMap": {-1, 2}, "Secret": {-1, 2},
		"ClusterRoleBinding": {-1, 0}, "RoleBinding": {-1, 0}, "Deployment": {0, 0}, "Service": {0, 2}, "ServiceAccount": {0, 0},
		"APIService":                     {1, -1},
		"ValidatingWebhookConfiguration": {1, -1}, // its server is in the set
		"Foo":                            {2, -2}, // an instance
	}
	objects := normalize(t, strings.ReplaceAll(in, "---\n\n", "---\n"))
	got, last := map[string]ranks{}, -5
	for i, o := range objects {
		got[o.Item.Kind] = ranks{o.Rank, o.DeleteRank}
		if i > 0 && o.Rank < last {
			t.Errorf("%s comes too late", o.Item.Key())
		}
		if i > 0 {
			last = o.Rank
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ranks by kind (-want +got):\n%s", diff)
	}
	if objects[0].Item.Name != "early" {
		t.Errorf("the first object is %s, want that of the lower wave", objects[0].Item.Key())
	}
}

func TestManagedInstances(t *testing.T) {
	o := options()
	o.ManagedTypes = []api.TypeInfo{{Group: "*.k8s.io", Kind: "NetworkPolicy"}, {Group: "", Kind: "Namespace"}}
	got, err := desired.Normalize(objects(t, foos[1:]+metrics[1:]+foo[1:]+`
{apiVersion: example.org/v1, kind: Foo, metadata: {name: needed, annotations: {op.test/depends-on: Foo/below}}}
---
{apiVersion: example.org/v1, kind: Foo, metadata: {name: below}}
---
{apiVersion: metrics.example.org/v1, kind: Value, metadata: {name: v}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: net}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: net}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {op.test/depends-on: Foo/needed}}}`), o)
	if err != nil {
		t.Fatal(err)
	}
	var items []api.InventoryItem
	managed, unserved := map[string]bool{}, map[string]bool{}
	for _, o := range got {
		items = append(items, o.Item)
		if o.Managed {
			managed[o.Item.Key()] = true
		}
		if o.Unserved {
			unserved[o.Item.Key()] = true
		}
	}
	want := map[string]bool{"example.org/Foo/shop/foo": true, "metrics.example.org/Value/shop/v": true, "networking.k8s.io/NetworkPolicy/shop/net": true}
	if diff := cmp.Diff(want, managed); diff != "" {
		t.Errorf("what an ordinary object needs is applied with it, all other instances later (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, desired.Instances(items, o.ManagedTypes)); diff != "" {
		t.Errorf("what was recorded must lead to the same instances (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"metrics.example.org/Value/shop/v": true}, unserved); diff != "" {
		t.Errorf("kinds that only an APIService of the set serves (-want +got):\n%s", diff)
	}
}

func TestScopes(t *testing.T) {
	cluster := strings.Replace(foos[1:], "scope: Namespaced", "scope: Cluster", 1)
	if got := normalize(t, cluster+foo[1:len(foo)-len("---\n")])[1]; got.Item.Key() != "example.org/Foo//foo" {
		t.Errorf("an instance of a cluster-scoped definition in the set is %s", got.Item.Key())
	}
	o := options()
	o.Scope = nil
	_, err := desired.Normalize(objects(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`), o)
	if err == nil {
		t.Error("a kind is known without discovery")
	}
}

func TestCheckRemovals(t *testing.T) {
	crd := api.InventoryItem{
		Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "bars.apps",
		ManagedTypes: []api.TypeInfo{{Group: "apps", Kind: "Bar"}},
	}
	shop := api.InventoryItem{Kind: "Namespace", Name: "shop"}
	released := crd
	released.DeletePolicy = api.DeletePolicyOrphanOnApply
	old := api.InventoryItem{
		Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1beta1.metrics.example.org",
		ManagedTypes: []api.TypeInfo{{Group: "metrics.example.org", Kind: "*"}},
	}
	const bar = "{apiVersion: apps/v1, kind: Bar, metadata: {name: b, namespace: other}}\n---\n{apiVersion: apps/v1, kind: Bar, metadata: {name: c, namespace: other}}"
	const value = "{apiVersion: metrics.example.org/v1, kind: Value, metadata: {name: v}}"
	for name, tc := range map[string]struct {
		why      string
		recorded api.InventoryItem
		in       string
		want     string
	}{
		"definition": {
			"its instance would be deleted and created again without end", crd, bar,
			"CustomResourceDefinition bars.apps is no longer in the set, but Bar other/b, which would be deleted with it, is; add the one or remove the other",
		},
		"namespace": {
			"as above", shop, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			"Namespace shop is no longer in the set, but ConfigMap shop/a, which would be deleted with it, is; add the one or remove the other",
		},
		"namespace of others": {"nothing of ours is in it", shop, bar, ""},
		"released":            {"the definition stays in the cluster", released, bar, ""},
		"with its instances":  {"both go", crd, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
		"still there":         {"nothing goes", shop, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", ""},
		"next version":        {"another APIService serves the group now", old, metrics[1:] + value, ""},
		"no definition":       {"others may go at any time", api.InventoryItem{Kind: "Service", Name: "shop"}, bar, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := desired.CheckRemovals([]api.InventoryItem{tc.recorded}, normalize(t, tc.in))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}
