// Package crdcheck finds mistakes in CustomResourceDefinitions that the API server accepts.
//
// [Defaults] is called in a test with the CRDs of an operator. Start with its example.
package crdcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
)

// Defaults returns every optional object in the schemas of crd whose fields have defaults that a user does not get by
// leaving the object out: it has no default, or one that says something else than the fields do. The API server sets
// the defaults of fields only in an object that exists. except are paths, such as spec.tls, of objects whose absence means
// something; one that is not needed is an error, too. Status and metadata are not checked.
//
// The defaults are evaluated with the code of the API server.
func Defaults(crd *apiextensionsv1.CustomResourceDefinition, except ...string) error {
	w := walker{except: except, used: map[string]bool{}}
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		root, err := structural(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return fmt.Errorf("CRD %s, version %s: %w", crd.Name, v.Name, err)
		}
		delete(root.Properties, "metadata")
		delete(root.Properties, "status")
		w.where = fmt.Sprintf("CRD %s, version %s", crd.Name, v.Name)
		w.properties("", root)
	}
	for _, path := range except {
		if !w.used[path] {
			w.found = append(w.found, fmt.Errorf("CRD %s: %s needs no exception; leave it out", crd.Name, path))
		}
	}
	return errors.Join(w.found...)
}

// structural returns a schema as the API server works with it.
func structural(v1 *apiextensionsv1.JSONSchemaProps) (*schema.Structural, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, &internal, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&internal)
}

// walker collects what it finds in schemas.
type walker struct {
	where  string
	except []string
	used   map[string]bool
	found  []error
}

// properties checks the properties of an object at path.
func (w *walker) properties(path string, s *schema.Structural) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], name
		if path != "" {
			at = path + "." + name
		}
		if w.optional(s, name) && anyDefault(&p) {
			w.compare(at, s, name)
		}
		w.below(at, &p)
	}
}

// below checks what a value at path holds.
func (w *walker) below(path string, s *schema.Structural) {
	w.properties(path, s)
	if s.Items != nil {
		w.below(path+"[]", s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		w.below(path+"{}", s.AdditionalProperties.Structural)
	}
}

func (*walker) optional(parent *schema.Structural, name string) bool {
	required := parent.ValueValidation != nil && slices.Contains(parent.ValueValidation.Required, name)
	p := parent.Properties[name]
	return !required || p.Default.Object != nil
}

// anyDefault reports whether a field of an object has a default, at any depth.
func anyDefault(s *schema.Structural) bool {
	for _, p := range s.Properties {
		if p.Default.Object != nil || anyDefault(&p) {
			return true
		}
	}
	return false
}

// compare compares an object that is left out with one that is empty.
func (w *walker) compare(path string, parent *schema.Structural, name string) {
	leftOut, empty := map[string]any{}, map[string]any{name: map[string]any{}}
	defaulting.Default(leftOut, parent)
	defaulting.Default(empty, parent)
	got, is := leftOut[name]
	want := empty[name]
	if is && reflect.DeepEqual(got, want) || reflect.DeepEqual(want, map[string]any{}) {
		return
	}
	if slices.Contains(w.except, path) {
		w.used[path] = true
		return
	}
	if !is {
		w.found = append(w.found, fmt.Errorf("%s: %s gets no defaults when it is left out, and %s when it is {}; add default: {} "+
			"(+kubebuilder:default={})", w.where, path, inJSON(want)))
		return
	}
	w.found = append(w.found, fmt.Errorf("%s: %s is %s when it is left out, and %s when it is {}; its default has to agree with those of its fields, "+
		"as default: {} does (+kubebuilder:default={})", w.where, path, inJSON(got), inJSON(want)))
}

func inJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
