package crdcheck_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/crdcheck"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// selectors are the fields of spec.p, the example of OpenStack's guidelines.
const selectors = "properties: {database: {type: string, default: DbPassword}, service: {type: string, default: Password}}"

// kindWith returns a kind whose spec.p has a schema.
func kindWith(t *testing.T, plural, p string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := yaml.UnmarshalStrict([]byte(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.crdcheck.trimtab.dev}
spec:
  group: crdcheck.trimtab.dev
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]s, kind: K%[1]s, listKind: K%[1]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              p: {type: object, %[2]s}
`, plural, p)), crd)
	if err != nil {
		t.Fatal(err)
	}
	return crd
}

// cases are schemas of spec.p.
var cases = map[string]struct {
	why  string
	p    string
	want string // in the error, or empty
}{
	"empty":                {why: "the fields say it all", p: "default: {}, " + selectors},
	"literal":              {why: "the whole value, as in the guidelines", p: "default: {database: DbPassword, service: Password}, " + selectors},
	"partial":              {why: "the fields complete a default", p: "default: {database: DbPassword}, " + selectors},
	"plain":                {why: "without defaults below there is nothing to get", p: "properties: {a: {type: string}}"},
	"nested":               {why: "at every depth", p: "default: {}, properties: {q: {type: object, default: {}, " + selectors + "}}"},
	"missing":              {why: "leaving it out leaves the defaults out", p: selectors, want: `spec.p gets no defaults when it is left out, and {"database":"DbPassword","service":"Password"} when it is {}`},
	"drifted":              {why: "two places, two values", p: "default: {database: Old}, " + selectors, want: `spec.p is {"database":"Old","service":"Password"} when it is left out`},
	"bare":                 {why: "who sets one field does not get the other", p: "default: {database: DbPassword, service: Password}, properties: {database: {type: string}, service: {type: string}}", want: `spec.p is {"database":"DbPassword","service":"Password"} when it is left out, and {} when it is {}`},
	"map":                  {why: "a map has no fields", p: "default: {a: b}, additionalProperties: {type: string}"},
	"required":             {why: "{} would not be valid", p: "required: [secret], properties: {secret: {type: string}, port: {type: integer, default: 443}}"},
	"required and agreed":  {why: "the rest agrees", p: "default: {secret: s}, required: [secret], properties: {secret: {type: string}, port: {type: integer, default: 443}}"},
	"required and drifted": {why: "the rest does not agree", p: "default: {secret: s, port: 1}, required: [secret], properties: {secret: {type: string}, port: {type: integer, default: 443}}", want: "list it as an exception"},
	"more":                 {why: "a default below only for those who leave it out", p: "default: {extra: x}, properties: {extra: {type: string}, a: {type: string, default: b}}", want: "spec.p is"},
	"halfway":              {why: "only the inner one lacks it", p: "default: {}, properties: {a: {type: string, default: b}, q: {type: object, " + selectors + "}}", want: "spec.p.q gets no defaults"},
	"of a list":            {why: "elements are objects, too", p: "properties: {l: {type: array, items: {type: object, properties: {q: {type: object, " + selectors + "}}}}}", want: "spec.p.l[].q gets no defaults"},
	"of a map":             {why: "and so are values", p: "properties: {m: {type: object, additionalProperties: {type: object, properties: {q: {type: object, " + selectors + "}}}}}", want: "spec.p.m{}.q gets no defaults"},
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := crdcheck.Defaults(kindWith(t, "x", tc.p))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: error %v, want one with %q", tc.why, err, tc.want)
			}
		})
	}
	if err := crdcheck.Defaults(kindWith(t, "x", selectors), "spec.p"); err != nil {
		t.Errorf("an exception is a finding: %v", err)
	}
	if err := crdcheck.Defaults(kindWith(t, "x", "default: {}, "+selectors), "spec.p"); err == nil || !strings.Contains(err.Error(), "needs no exception") {
		t.Errorf("an exception without need: %v", err)
	}
	optional := kindWith(t, "x", "default: {}, "+selectors)
	optional.Spec.Versions[0].Schema.OpenAPIV3Schema.Required = nil
	if err := crdcheck.Defaults(optional); err == nil || !strings.Contains(err.Error(), "version v1: spec gets no defaults") {
		t.Errorf("a spec that may be left out: %v", err)
	}
}

// TestOwnKinds: the kinds of this repository keep the rules.
func TestOwnKinds(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*/*/crds/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %q: %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(crdcheck.Defaults(crd), crdcheck.References(crd)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestServer: what the check says of a CRD, an API server does.
func TestServer(t *testing.T) {
	t.Parallel()
	t.Run("003-20 an object left out, and one with a field, read back with all defaults, unless the check says otherwise", func(t *testing.T) {
		t.Parallel()
		cfg := testenv.Start(t)
		c, namespace := testenv.Client(t, cfg), testenv.Namespace(t, cfg)
		for plural, name := range map[string]string{"ones": "empty", "twos": "literal", "threes": "partial", "fours": "missing", "fives": "drifted", "sixes": "bare"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				crd := kindWith(t, plural, cases[name].p)
				testenv.Install(t, cfg, crd)
				back := func(object string, p map[string]any) map[string]any {
					spec := map[string]any{}
					if p != nil {
						spec["p"] = p
					}
					obj := &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "crdcheck.trimtab.dev/v1", "kind": "K" + plural, "spec": spec,
						"metadata": map[string]any{"namespace": namespace, "name": object},
					}}
					if err := c.Create(t.Context(), obj); err != nil {
						t.Fatal(err)
					}
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
						t.Fatal(err)
					}
					got, _, err := unstructured.NestedMap(obj.Object, "spec", "p")
					if err != nil {
						t.Fatal(err)
					}
					return got
				}
				all := map[string]any{"database": "DbPassword", "service": "Password"}
				one := cmp.Equal(map[string]any{"database": "mine", "service": "Password"}, back("one", map[string]any{"database": "mine"}))
				complete, good := one && cmp.Equal(all, back("none", nil)), crdcheck.Defaults(crd) == nil
				if complete != good {
					t.Errorf("the object is complete, left out and with one field: %t; the check finds nothing: %t", complete, good)
				}
				if want := cases[name].want == ""; complete != want || one == (name == "bare") {
					t.Errorf("the object is complete, left out and with one field: %t, want %t; with one field: %t", complete, want, one)
				}
			})
		}
	})
}
