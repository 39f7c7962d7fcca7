package crdcheck_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/crdcheck"
)

// compared returns a CRD whose spec has the given fields, as properties in YAML.
func compared(t *testing.T, fields, required string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return definition(t, `
metadata: {name: shops.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Shop, plural: shops}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          metadata: {type: object}
          spec:
            type: object
            required: [`+required+`]
            properties: {`+fields+`}
`)
}

func definition(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// said returns the lines of an error, without where they are.
func said(err error) []string {
	if err == nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(err.Error()) {
		out = append(out, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "CRD shops.example.org, version v1: "))
	}
	return out
}

func TestCompatibleFields(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why                         string
		before, after               string
		requiredBefore, requiredNow string
		want                        []string
	}{
		"nothing":              {why: "the same", before: "a: {type: string}", after: "a: {type: string}"},
		"description":          {why: "nobody computes with it", before: "a: {type: string}", after: "a: {type: string, description: new}"},
		"new field":            {why: "it is optional", before: "a: {type: string}", after: "a: {type: string}, b: {type: integer}"},
		"removed field":        {why: "its values are lost", before: "a: {type: string}", want: []string{"spec.a is removed; it is dropped from objects that have it"}},
		"removed below a list": {why: "paths name lists", before: "a: {type: array, items: {type: object, properties: {b: {type: string}}}}", after: "a: {type: array, items: {type: object}}", want: []string{"spec.a[].b is removed; it is dropped from objects that have it"}},
		"removed below a map":  {why: "paths name maps", before: "a: {type: object, additionalProperties: {type: object, properties: {b: {type: string}}}}", after: "a: {type: object, additionalProperties: {type: object}}", want: []string{"spec.a{}.b is removed; it is dropped from objects that have it"}},
		"removed but kept":     {why: "unknown fields stay", before: "a: {type: object, properties: {b: {type: string}}}", after: "a: {type: object, x-kubernetes-preserve-unknown-fields: true}"},
		"fields to a map":      {why: "each field is an entry", before: "a: {type: object, properties: {b: {type: string}}}", after: "a: {type: object, additionalProperties: {type: string}}"},
		"fields to a map of others": {
			why: "the entries have another type", before: "a: {type: object, properties: {b: {type: string}}}", after: "a: {type: object, additionalProperties: {type: integer}}",
			want: []string{"spec.a.b is of type integer instead of string"},
		},
		"type":              {why: "stored values are wrong", before: "a: {type: string}", after: "a: {type: integer}", want: []string{"spec.a is of type integer instead of string"}},
		"wider type":        {why: "an integer is a number", before: "a: {type: integer}", after: "a: {type: number}"},
		"narrower type":     {why: "1.5 is no integer", before: "a: {type: number}", after: "a: {type: integer}", want: []string{"spec.a is of type integer instead of number"}},
		"int or string":     {why: "it takes what was there", before: "a: {type: string}", after: "a: {x-kubernetes-int-or-string: true}"},
		"only string":       {why: "integers are refused", before: "a: {x-kubernetes-int-or-string: true}", after: "a: {type: string}", want: []string{"spec.a is of type string instead of integer or string"}},
		"new enum value":    {why: "more is allowed", before: "a: {type: string, enum: [x]}", after: "a: {type: string, enum: [x, y]}"},
		"removed values":    {why: "stored values are refused", before: "a: {type: string, enum: [x, y, z]}", after: "a: {type: string, enum: [y]}", want: []string{`spec.a cannot be "x", "z" any more`}},
		"new enum":          {why: "any text was allowed", before: "a: {type: string}", after: "a: {type: string, enum: [x]}", want: []string{`spec.a is limited to the values "x" now`}},
		"no enum":           {why: "more is allowed", before: "a: {type: string, enum: [x]}", after: "a: {type: string}"},
		"required":          {why: "stored objects lack it", before: "a: {type: string}", after: "a: {type: string}, b: {type: string}", requiredNow: "b", want: []string{"spec.b is new and required; give it a default, or make it optional"}},
		"required later":    {why: "stored objects may lack it", before: "a: {type: string}", after: "a: {type: string}", requiredNow: "a", want: []string{"spec.a is required now; give it a default, or leave it optional"}},
		"required, default": {why: "the default is set when objects are read", before: "a: {type: string}", after: "a: {type: string}, b: {type: string, default: x}", requiredNow: "b"},
		"optional":          {why: "more is allowed", before: "a: {type: string}", after: "a: {type: string}", requiredBefore: "a"},
		"new default":       {why: "K8s allows to add it; nothing is refused", before: "a: {type: string}", after: "a: {type: string, default: x}"},
		"other default":     {why: "objects without it change", before: "a: {type: string, default: x}", after: "a: {type: string, default: z}", want: []string{`spec.a is "z" by default instead of "x"; objects that leave it out change`}},
		"no default":        {why: "objects without it change", before: "a: {type: string, default: x}", after: "a: {type: string}", want: []string{`spec.a has no default any more; it was "x"`}},
		"same default":      {why: "how it is written does not matter", before: `a: {type: object, default: {"b": 1}}`, after: "a: {type: object, default: {b: 1}}"},
		"not null":          {why: "stored nulls are refused", before: "a: {type: string, nullable: true}", after: "a: {type: string}", want: []string{"spec.a cannot be null any more"}},
		"shorter":           {why: "long texts are refused", before: "a: {type: string, maxLength: 9}", after: "a: {type: string, maxLength: 5}", want: []string{"spec.a has maxLength 5 now, and 9 before"}},
		"longer":            {why: "more is allowed", before: "a: {type: string, maxLength: 5}", after: "a: {type: string, maxLength: 9}"},
		"first limit":       {why: "there was none", before: "a: {type: string}", after: "a: {type: string, maxLength: 5}", want: []string{"spec.a has maxLength 5 now"}},
		"no empty text":     {why: "empty texts are refused", before: "a: {type: string}", after: "a: {type: string, minLength: 1}", want: []string{"spec.a has minLength 1 now"}},
		"minLength 0":       {why: "it limits nothing", before: "a: {type: string}", after: "a: {type: string, minLength: 0}"},
		"limits of numbers": {why: "both sides", before: "a: {type: integer, minimum: 1, maximum: 9}", after: "a: {type: integer, minimum: 2, maximum: 8}", want: []string{"spec.a has maximum 8 now, and 9 before", "spec.a has minimum 2 now, and 1 before"}},
		"minimum 0":         {why: "negative numbers are refused", before: "a: {type: integer}", after: "a: {type: integer, minimum: 0}", want: []string{"spec.a has minimum 0 now"}},
		"exclusive": {
			why: "the limit itself is refused", before: "a: {type: number, minimum: 1, maximum: 9}", after: "a: {type: number, minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: true}",
			want: []string{"spec.a cannot be its maximum 9 itself any more", "spec.a cannot be its minimum 1 itself any more"},
		},
		"sizes": {
			why: "lists and maps have limits, too", before: "a: {type: array, items: {type: string}}, b: {type: object, additionalProperties: {type: string}}", after: "a: {type: array, maxItems: 3, minItems: 1, items: {type: string}}, b: {type: object, maxProperties: 3, minProperties: 1, additionalProperties: {type: string}}",
			want: []string{"spec.a has maxItems 3 now", "spec.a has minItems 1 now", "spec.b has maxProperties 3 now", "spec.b has minProperties 1 now"},
		},
		"multiple":      {why: "others are refused", before: "a: {type: integer}", after: "a: {type: integer, multipleOf: 5}", want: []string{"spec.a has to be a multiple of 5 now"}},
		"pattern":       {why: "nobody can tell which texts match both", before: "a: {type: string, pattern: ^a}", after: "a: {type: string, pattern: ^b}", want: []string{"spec.a has to match the pattern ^b now"}},
		"no pattern":    {why: "more is allowed", before: "a: {type: string, pattern: ^a}", after: "a: {type: string}"},
		"format":        {why: "others are refused", before: "a: {type: string}", after: "a: {type: string, format: date-time}", want: []string{"spec.a has to have the format date-time now"}},
		"new rule":      {why: "it may refuse stored objects", before: "a: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}", after: "a: {type: integer, x-kubernetes-validations: [{rule: self > 0}, {rule: self < 9}]}", want: []string{"spec.a has to satisfy a new rule: self < 9"}},
		"rule gone":     {why: "more is allowed", before: "a: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}", after: "a: {type: integer}"},
		"message":       {why: "the rule is the same", before: "a: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}", after: "a: {type: integer, x-kubernetes-validations: [{rule: self > 0, message: no}]}"},
		"combination":   {why: "it is not evaluated here", before: "a: {type: integer}", after: "a: {type: integer, anyOf: [{minimum: 1}]}", want: []string{"spec.a has other conditions in anyOf; compare them by eye"}},
		"drops unknown": {why: "fields are lost", before: "a: {type: object, x-kubernetes-preserve-unknown-fields: true}", after: "a: {type: object}", want: []string{"spec.a drops fields that its schema does not name now"}},
		"list type":     {why: "equal entries are refused", before: "a: {type: array, items: {type: string}}", after: "a: {type: array, x-kubernetes-list-type: set, items: {type: string}}", want: []string{"spec.a is a list of type set instead of atomic; server-side apply merges it in another way, and it may be refused"}},
		"list keys": {
			why: "entries are merged in another way", before: "a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: {type: object, properties: {x: {type: string}, z: {type: string}}}}",
			after: "a: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x, z], items: {type: object, properties: {x: {type: string}, z: {type: string}}}}",
			want:  []string{`the key of the list spec.a is ["x" "z"] instead of ["x"]`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := said(crdcheck.Compatible(compared(t, tt.before, tt.requiredBefore), compared(t, tt.after, tt.requiredNow)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func TestCompatibleVersions(t *testing.T) {
	t.Parallel()
	const (
		head = "metadata: {name: shops.example.org}\nspec:\n  group: example.org\n  scope: Namespaced\n  names: {kind: Shop, plural: shops}\n  versions:\n"
		v1   = "  - {name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}}\n"
		old  = "  - {name: v1alpha1, served: true, storage: false}\n"
	)
	tests := map[string]struct {
		why           string
		before, after string
		want          string // all of it
	}{
		"new version":    {why: "clients of the others go on", before: head + v1, after: head + v1 + old},
		"removed":        {why: "its clients fail", before: head + v1 + old, after: head + v1, want: "CRD shops.example.org, version v1alpha1: it is removed; clients that use it fail. Deprecate it first, and keep it with served: false for one release"},
		"removed unused": {why: "it was not served", before: head + v1 + strings.Replace(old, "served: true", "served: false", 1), after: head + v1},
		"removed stored": {
			why: "objects are stored in it", before: head + v1, after: head + strings.ReplaceAll(v1, "v1,", "v2,"),
			want: "CRD shops.example.org, version v1: it is removed while objects are stored in it, which the API server refuses; keep it with served: false until all of them have been written again, and remove it from status.storedVersions then",
		},
		"removed, once stored": {
			why: "a cluster remembers it", before: head + v1 + old + "status: {storedVersions: [v1alpha1, v1]}\n", after: head + v1,
			want: "CRD shops.example.org, version v1alpha1: it is removed while objects are stored in it, which the API server refuses; keep it with served: false until all of them have been written again, and remove it from status.storedVersions then",
		},
		"not served": {why: "its clients fail", before: head + v1 + old, after: head + v1 + strings.Replace(old, "served: true", "served: false", 1), want: "CRD shops.example.org, version v1alpha1: it is not served any more; clients that use it fail"},
		"not served, stored": {
			why: "nobody can read what is stored", before: head + v1, after: head + strings.Replace(v1, "served: true", "served: false", 1),
			want: "CRD shops.example.org, version v1: it is not served any more, and objects are still stored in it; clients that use it fail",
		},
		"scope":     {why: "the API server refuses it", before: head + v1, after: strings.Replace(head, "Namespaced", "Cluster", 1) + v1, want: "CRD shops.example.org: the scope is Cluster instead of Namespaced; the API server refuses that, and a new CRD has to have another name"},
		"kind":      {why: "manifests name it", before: head + v1, after: strings.Replace(head, "Shop,", "Store,", 1) + v1, want: "CRD shops.example.org: the kind is Store instead of Shop; manifests of the old one are refused"},
		"another":   {why: "it replaces nothing", before: head + v1, after: strings.Replace(head, "shops.example", "stores.example", 1) + v1, want: "CRD shops.example.org: it is called stores.example.org now, which is another CRD; objects of the old one stay there"},
		"no status": {why: "the operator cannot write it", before: head + v1, after: head + strings.Replace(v1, "status: {}, ", "", 1), want: "CRD shops.example.org, version v1: the subresource status is removed; writing the status fails"},
		"status":    {why: "a client that writes it with the object", before: head + old, after: head + strings.Replace(old, "storage: false", "storage: false, subresources: {status: {}}", 1), want: "CRD shops.example.org, version v1alpha1: the subresource status is added; a status that is written with the object is ignored"},
		"no scale":  {why: "autoscalers use it", before: head + v1, after: head + strings.Replace(v1, ", scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}", "", 1), want: "CRD shops.example.org, version v1: the subresource scale is removed; kubectl scale and autoscalers fail"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := crdcheck.Compatible(definition(t, tt.before), definition(t, tt.after)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}
