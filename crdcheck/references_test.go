package crdcheck_test

import (
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/crdcheck"
)

const name = "type: string, minLength: 1, maxLength: 253, pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'"

func TestReferences(t *testing.T) {
	t.Parallel()
	for title, tc := range map[string]struct {
		why, fields string
		want        string // in the error, or empty
	}{
		"a name":              {why: "is what is wanted", fields: "databaseInstance: {" + name + "}"},
		"an object":           {why: "with the name in it", fields: "databaseRef: {type: object, properties: {name: {" + name + "}}}"},
		"a choice":            {why: "the schema lists the names", fields: "databaseRef: {type: string, enum: [a, b]}"},
		"another field":       {why: "is no dependency", fields: "databaseName: {type: string}, href: {type: string}"},
		"with a key":          {why: "says more than which object", fields: "secretRef: {type: object, properties: {name: {type: string}, key: {type: string}}}"},
		"a selector of many":  {why: "does not claim to be one object", fields: "podSelector: {type: object, properties: {matchLabels: {type: object}}}"},
		"empty":               {why: "nobody is called that", fields: "databaseInstance: {type: string, maxLength: 253, pattern: '^a$'}", want: "spec.p.databaseInstance takes texts that are no name of an object; add minLength: 1"},
		"long":                {why: "nobody is called that", fields: "databaseInstance: {type: string, minLength: 1, maxLength: 254, pattern: '^a$'}", want: "add maxLength: 253"},
		"any":                 {why: "spaces", fields: "databaseRef: {type: string, minLength: 1, maxLength: 253}", want: "add pattern: ^[a-z0-9]"},
		"any in an object":    {why: "all three", fields: "databaseRef: {type: object, properties: {name: {type: string}}}", want: "spec.p.databaseRef takes texts that are no name of an object; add minLength: 1, maxLength: 253, pattern"},
		"labels":              {why: "any number of objects", fields: "databaseRef: {type: object, properties: {matchLabels: {type: object}, matchExpressions: {type: array}}}", want: "spec.p.databaseRef is a dependency by labels"},
		"labels by name":      {why: "any number of objects", fields: "databaseInstanceSelector: {type: object, properties: {matchLabels: {type: object}}}", want: "is a dependency by labels"},
		"a map":               {why: "any number of objects", fields: "databaseRefLabels: {type: object, additionalProperties: {type: string}}", want: "is a dependency by a map"},
		"annotations":         {why: "any number of objects", fields: "databaseInstanceAnnotations: {type: object, additionalProperties: {type: string}}", want: "is a dependency by a map"},
		"several":             {why: "each of them", fields: "poolRefs: {type: array, items: {type: string}}", want: "spec.p.poolRefs takes texts"},
		"several by name":     {why: "each has a name", fields: "poolRefs: {type: array, items: {" + name + "}}"},
		"an object reference": {why: "any kind", fields: "databaseRef: {type: object, properties: {name: {type: string}, fieldPath: {type: string}, resourceVersion: {type: string}}}", want: "is an ObjectReference"},
		"in a list":           {why: "each of them", fields: "all: {type: array, items: {type: object, properties: {poolRef: {type: string}}}}", want: "spec.p.all[].poolRef takes"},
		"in a map":            {why: "each of them", fields: "all: {type: object, additionalProperties: {type: object, properties: {poolRef: {type: string}}}}", want: "spec.p.all{}.poolRef takes"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			err := crdcheck.References(kindWith(t, "x", "properties: {"+tc.fields+"}"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: error %v, want one with %q", tc.why, err, tc.want)
			}
		})
	}
	if err := crdcheck.References(kindWith(t, "x", "properties: {poolRef: {type: string}}"), "spec.p.poolRef"); err != nil {
		t.Errorf("an exception is a finding: %v", err)
	}
	if err := crdcheck.All(kindWith(t, "x", "properties: {poolRef: {type: string}}"), "spec.p.poolRef"); err != nil {
		t.Errorf("an exception is a finding of the other check: %v", err)
	}
	if err := crdcheck.References(kindWith(t, "x", "properties: {}"), "spec.p.poolRef"); err == nil || !strings.Contains(err.Error(), "needs no exception") {
		t.Errorf("an exception without need: %v", err)
	}
}
