package dev

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/install"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/testenv"
)

// manifestsOf are the manifests of an operator whose kind Gadget has a scope, a version and a type of spec.size.
const manifestsOf = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.dev.example.com}
spec:
  group: dev.example.com
  scope: %s
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: %s
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: %s}}}}}}
---
` + deployment

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: gadgets, namespace: gadgets}
spec: {template: {spec: {serviceAccountName: gadgets}}}
`

// TestDefinitionFits: what the API server would refuse, and what does not fit its objects, is found before anything is replaced.
func TestDefinitionFits(t *testing.T) {
	t.Parallel()
	admin, err := install.Client(testenv.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	parsed := func(manifests string) *build {
		b := &build{}
		if err := b.parse([]byte(manifests)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := parsed(fmt.Sprintf(manifestsOf, "Cluster", "v1", "string"))
	s := &session{admin: admin, current: old}
	if err := install.Apply(t.Context(), admin, old.installed()); err != nil {
		t.Fatal(err)
	}
	object := parsed("apiVersion: dev.example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {size: small}\n---\n" + deployment).installed()
	if err := install.Apply(t.Context(), admin, object); err != nil {
		t.Fatal(err)
	}
	// In this cluster, which ends with the session, nobody deletes the object.
	alone := &session{admin: admin, current: old, options: Options{Temporary: true}, objects: &objects{screen: newScreen(t.Output())}}
	if err := alone.end(t.Context()); err == nil || !strings.Contains(err.Error(), "may be left: Gadget/a") {
		t.Errorf("the end without an operator: %v", err)
	}
	tests := map[string]struct {
		why, manifests string
		want           []string
	}{
		"the same":       {"nothing happens to objects", fmt.Sprintf(manifestsOf, "Cluster", "v1", "string"), nil},
		"another scope":  {"a scope is for ever", fmt.Sprintf(manifestsOf, "Namespaced", "v1", "string"), []string{"the API server refuses the new definition of Gadget, which stays as it is", "spec.scope", "immutable"}},
		"a version less": {"objects are stored in it", fmt.Sprintf(manifestsOf, "Cluster", "v2", "string"), []string{"the API server refuses the new definition of Gadget", "v1", "storedVersions"}},
		"another type":   {"the object could not be read", fmt.Sprintf(manifestsOf, "Cluster", "v1", "integer"), []string{"does not fit 1 of its 1 objects", "Gadget/a", "spec.size: was of type string, is now of type integer", "kubectl delete gadgets.dev.example.com a"}},
		"a kind less":    {"nobody would manage the object", deployment, []string{"the operator no longer has the kind Gadget, and 1 objects of it exist", "kubectl delete gadgets.dev.example.com a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := steps.New(t.Output()).Run("definitions", func(st *steps.Step) error { return s.fits(t.Context(), parsed(tt.manifests), st) })
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("%s: %v", tt.why, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q lacks %q", tt.why, err, want)
				}
			}
		})
	}
}
