package dev

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestProblems: an object that a new schema does not fit is described by its fields, and others are left alone.
func TestProblems(t *testing.T) {
	t.Parallel()
	const before = `{size: {type: string}, tags: {type: array, items: {type: string}}, note: {type: string}}`
	tests := map[string]struct {
		why, spec, status string // of the new schema
		want              []string
	}{
		"nothing":             {"the object is valid", before, "", nil},
		"another type":        {"the value cannot be read", `{size: {type: integer}, tags: {type: array, items: {type: string}}, note: {type: string}}`, "", []string{"spec.size: was of type string, is now of type integer, and the object has a string"}},
		"an item's type":      {"a list has values, too", `{size: {type: string}, tags: {type: array, items: {type: integer}}, note: {type: string}}`, "", []string{"spec.tags[0]: was of type string, is now of type integer, and the object has a string"}},
		"a field less":        {"the API server drops the value", `{tags: {type: array, items: {type: string}}}`, "", []string{"spec.size: the field is gone, and its value would be lost: small"}},
		"an unused field":     {"no object has a value", `{size: {type: string}, tags: {type: array, items: {type: string}}}`, "", nil},
		"a default":           {"the object gets it", `{size: {type: string}, tags: {type: array, items: {type: string}}, color: {type: string, default: red}}, required: [color]`, "", nil},
		"too short":           {"the value is not allowed any more", `{size: {type: string, maxLength: 2}, tags: {type: array, items: {type: string}}}`, "", []string{`spec.size: Too long: may not be more than 2 bytes`}},
		"a rule":              {"rules are checked like the API server does", `{size: {type: string, x-kubernetes-validations: [{rule: "self != 'small'", message: no small ones}]}, tags: {type: array, items: {type: string}}}`, "", []string{`spec.size: Invalid value: "small": no small ones`}},
		"a status field less": {"the operator writes the status again", before, `{}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := tt.status
			if status == "" {
				status = `{count: {type: integer}}`
			}
			c, err := newChecker(schemaOf(t, before, `{count: {type: integer}}`), schemaOf(t, tt.spec, status))
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "a"},
				"spec":   map[string]any{"size": "small", "tags": []any{"x"}},
				"status": map[string]any{"count": int64(1)},
			}}
			if diff := cmp.Diff(tt.want, c.problems(t.Context(), o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func schemaOf(t *testing.T, spec, status string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	s := &apiextensionsv1.JSONSchemaProps{}
	text := `{type: object, properties: {apiVersion: {type: string}, kind: {type: string}, metadata: {type: object}, ` +
		`spec: {type: object, properties: ` + spec + `}, status: {type: object, properties: ` + status + `}}}`
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}
