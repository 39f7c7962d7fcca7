package crdcheck_test

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/crdcheck"
)

// Who leaves spec.tls out gets no port.
func ExampleDefaults() {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := yaml.Unmarshal([]byte(`
metadata: {name: shops.example.org}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              tls:
                type: object
                properties:
                  port: {type: integer, default: 443}
`), crd)
	fmt.Println(err)
	fmt.Println(crdcheck.Defaults(crd))
	// Output:
	// <nil>
	// CRD shops.example.org, version v1: spec.tls gets no defaults when it is left out, and {"port":443} when it is {}; add default: {} (+kubebuilder:default={})
}

// A dependency is the name of one object.
func ExampleReferences() {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := yaml.Unmarshal([]byte(`
metadata: {name: shops.example.org}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              databaseInstance: {type: string, minLength: 1}
              cacheRef: {type: object, properties: {matchLabels: {type: object}}}
`), crd)
	fmt.Println(err)
	fmt.Println(crdcheck.References(crd))
	// Output:
	// <nil>
	// CRD shops.example.org, version v1: spec.cacheRef is a dependency by labels, which finds any number of objects; make it the name of one object
	// CRD shops.example.org, version v1: spec.databaseInstance takes texts that are no name of an object; add maxLength: 253, pattern: ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$
}

// A text that was free may only be one of two now.
func ExampleCompatible() {
	read := func(size string) *apiextensionsv1.CustomResourceDefinition {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := yaml.Unmarshal([]byte(`
metadata: {name: shops.example.org}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: `+size+`}}}}
`), crd)
		if err != nil {
			panic(err)
		}
		return crd
	}
	fmt.Println(crdcheck.Compatible(read("{type: string}"), read("{type: string, enum: [small, large]}")))
	// Output:
	// CRD shops.example.org, version v1: spec.size is limited to the values "small", "large" now
}
