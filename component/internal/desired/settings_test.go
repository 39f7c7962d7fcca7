package desired_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/health"
)

func TestSettings(t *testing.T) {
	type settings struct {
		Policies      api.Policies
		Apply, Delete int16
		Purge         *int16
		Hints         health.Hints
		Warnings      []string
	}
	defaults := options().Policies
	for name, tc := range map[string]struct {
		why         string
		annotations string
		want        settings
	}{
		"none": {
			why:  "the operator's defaults apply",
			want: settings{Policies: defaults},
		},
		"empty": {
			why: "templates render empty values for what is not set",
			annotations: `op.test/adoption-policy: "", op.test/update-policy: " ", op.test/apply-order: "", op.test/purge-order: "",
				op.test/status-hint: "", op.test/depends-on: "", op.test/implicit-edges: ""`,
			want: settings{Policies: defaults},
		},
		"policies": {
			why: "the annotation wins over the default",
			annotations: `op.test/adoption-policy: always, op.test/reconcile-policy: once, op.test/update-policy: ssa-override,
				op.test/delete-policy: orphan-on-delete`,
			want: settings{Policies: api.Policies{
				AdoptionPolicy: api.AdoptionPolicyAlways, ReconcilePolicy: api.ReconcilePolicyOnce,
				UpdatePolicy: api.UpdatePolicySsaOverride, DeletePolicy: api.DeletePolicyOrphanOnDelete,
			}},
		},
		"deprecated": {
			why:         "default is another word for unset, and users should learn that it goes",
			annotations: `op.test/update-policy: default, op.test/delete-policy: default`,
			want: settings{Policies: defaults, Warnings: []string{
				`Deployment web: annotation op.test/update-policy is "default", which is deprecated; remove the annotation`,
				`Deployment web: annotation op.test/delete-policy is "default", which is deprecated; remove the annotation`,
			}},
		},
		"lowest orders": {
			why:         "the range is that of 16 bits",
			annotations: `op.test/apply-order: "-32768", op.test/delete-order: " -32768 ", op.test/purge-order: "-32768"`,
			want:        settings{Policies: defaults, Apply: -32768, Delete: -32768, Purge: new(int16(-32768))},
		},
		"highest orders": {
			why:         "the range is that of 16 bits",
			annotations: `op.test/apply-order: "32767", op.test/delete-order: "32767", op.test/purge-order: "32767"`,
			want:        settings{Policies: defaults, Apply: 32767, Delete: 32767, Purge: new(int16(32767))},
		},
		"hints": {
			why:         "they may be combined, and blanks do not matter",
			annotations: `op.test/status-hint: "has-observed-generation, has-ready-condition,conditions=b; a ;b,"`,
			want: settings{Policies: defaults, Hints: health.Hints{
				ObservedGeneration: true, ReadyCondition: true, Conditions: []string{"a", "b"},
			}},
		},
		"another operator": {
			why: "the prefix is the operator's name",
			annotations: `other.test/adoption-policy: always, other.test/apply-order: "7", other.test/status-hint: nonsense,
				op.testing/update-policy: recreate, update-policy: recreate`,
			want: settings{Policies: defaults},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := normalize(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, annotations: {`+tc.annotations+`}}}`)[0]
			is := settings{got.Item.Policies, got.Item.ApplyOrder, got.Item.DeleteOrder, got.Purge, got.Hints, got.Warnings}
			if diff := cmp.Diff(tc.want, is); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.why, diff)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	const plain = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b, c: d}}`
	digestOf := func(t *testing.T, text string, change ...func(*desired.Options)) string {
		t.Helper()
		o := options()
		for _, f := range change {
			f(&o)
		}
		got, err := desired.Normalize(objects(t, text), o)
		if err != nil {
			t.Fatal(err)
		}
		return got[0].Item.Digest
	}
	nextGeneration := func(o *desired.Options) { o.Generation++ }
	otherOwner := func(o *desired.Options) { o.OwnerID = "c1/shop/other" }
	first := digestOf(t, plain)
	if len(first) != 26 {
		t.Errorf("the digest %q does not have 128 bits", first)
	}
	const perGeneration = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {op.test/reconcile-policy: on-object-or-component-change}}, data: {a: b, c: d}}`
	const once = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {op.test/reconcile-policy: once}}, data: {a: x}}`
	for name, tc := range map[string]struct {
		why  string
		got  string
		want string
	}{
		"order of fields":        {"maps have no order", digestOf(t, `{data: {c: d, a: b}, metadata: {name: a}, kind: ConfigMap, apiVersion: v1}`), first},
		"namespace":              {"it is the same object", digestOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}, data: {a: b, c: d}}`), first},
		"our annotations":        {"they do not reach the object", digestOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {op.test/apply-order: "1", op.test/digest: x}}, data: {a: b, c: d}}`), first},
		"another generation":     {"the manifest is the same", digestOf(t, plain, nextGeneration), first},
		"another owner":          {"a handover does not change the manifest", digestOf(t, plain, otherOwner), first},
		"stringData":             {"it becomes the same data", digestOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: b}}`), digestOf(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: Yg==}}`)},
		"once":                   {"the object is never written again", digestOf(t, once), digestOf(t, once[:len(once)-len("{a: x}}")]+"{a: y}}")},
		"per generation":         {"there is one write per generation", digestOf(t, perGeneration), first + "@7"},
		"per generation, higher": {"there is one write per generation", digestOf(t, perGeneration, nextGeneration), first + "@8"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s, so the digest must be %q, not %q", name, tc.why, tc.want, tc.got)
		}
	}
	for name, other := range map[string]string{
		"data":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b, c: e}}`,
		"label":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: b}}, data: {a: b, c: d}}`,
		"annotation": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {a: b}}, data: {a: b, c: d}}`,
		"null":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b, c: d}, immutable: null}`,
	} {
		if digestOf(t, other) == first {
			t.Errorf("another %s has the same digest", name)
		}
	}
}

func TestOwner(t *testing.T) {
	owner, uid, key, ok := desired.ParseOwner(desired.OwnerAnnotation("c1/shop/web", "u1", "rbac.authorization.k8s.io/ClusterRole//a b"))
	if owner != "c1/shop/web" || uid != "u1" || key != "rbac.authorization.k8s.io/ClusterRole//a b" || !ok {
		t.Errorf("the annotation reads as owner %q, key %q, %v", owner, key, ok)
	}
	if _, _, _, ok := desired.ParseOwner("c1/shop/web"); ok {
		t.Error("an owner without a key is accepted, so a copied label would not be recognised")
	}
	if l := desired.OwnerLabel("c1/shop/web"); len(l) > 63 || l == desired.OwnerLabel("c1/shop/web2") {
		t.Errorf("the label %q cannot tell owners apart", l)
	}
}

func TestManages(t *testing.T) {
	for name, tc := range map[string]struct {
		why         string
		group, kind string
		of          [2]string
		want        bool
	}{
		"exact":         {"the type itself", "example.org", "Foo", [2]string{"example.org", "Foo"}, true},
		"other kind":    {"another type", "example.org", "Foo", [2]string{"example.org", "Bar"}, false},
		"other group":   {"another type", "example.org", "Foo", [2]string{"example.com", "Foo"}, false},
		"any kind":      {"an APIService serves a group", "example.org", "*", [2]string{"example.org", "Bar"}, true},
		"any":           {"all types", "*", "*", [2]string{"", "ConfigMap"}, true},
		"below":         {"a group below", "*.example.org", "*", [2]string{"a.b.example.org", "Bar"}, true},
		"below, itself": {"the group is not below itself", "*.example.org", "*", [2]string{"example.org", "Bar"}, false},
		"below, suffix": {"the end of a name is not a part of it", "*.example.org", "*", [2]string{"myexample.org", "Bar"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := desired.Manages([]api.TypeInfo{{Group: "x", Kind: "y"}, {Group: tc.group, Kind: tc.kind}}, groupKind(tc.of))
			if got != tc.want {
				t.Errorf("%s: got %v", tc.why, got)
			}
		})
	}
}
