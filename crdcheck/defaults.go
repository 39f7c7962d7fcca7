// Package crdcheck finds mistakes in CustomResourceDefinitions that the API server accepts.
//
// [Defaults] and [References] are called in a test with the CRDs of an operator, or by trimtab lint --crds. Start with their
// examples.
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
	"k8s.io/apimachinery/pkg/runtime"
)

// Defaults returns every optional object in the schemas of crd whose fields have defaults that a user does not get by
// leaving the object out: it has no default, or one that says something else than the fields do. The API server sets
// the defaults of fields only in an object that exists. So what an object's default says, its fields have to say, too,
// for a user who sets only one of them. An object without a default that has a required field without one
// cannot be {}, and is no mistake. except are paths, such as spec.tls, of objects whose absence means
// something; one that is not needed is an error, too. Status and metadata are not checked.
//
// The defaults are evaluated with the code of the API server.
func Defaults(crd *apiextensionsv1.CustomResourceDefinition, except ...string) error {
	e := exceptions{except, map[string]bool{}}
	return errors.Join(defaults(crd, e), e.needless(crd.Name))
}

func defaults(crd *apiextensionsv1.CustomResourceDefinition, e exceptions) error {
	w := walker{exceptions: e}
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
	exceptions

	where string
	found []error
}

// properties checks the properties of an object at path.
func (w *walker) properties(path string, s *schema.Structural) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], name
		if path != "" {
			at = path + "." + name
		}
		if w.optional(s, name) && (anyDefault(&p) || literal(&p)) {
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

// literal reports whether an object with fields has a default that sets some.
func literal(s *schema.Structural) bool {
	value, _ := s.Default.Object.(map[string]any)
	return len(value) > 0 && len(s.Properties) > 0
}

// compare compares an object that is left out with one that is empty, or has only what must not be left out.
func (w *walker) compare(path string, parent *schema.Structural, name string) {
	leftOut, least := map[string]any{}, map[string]any{}
	defaulting.Default(leftOut, parent)
	got, is := leftOut[name]
	demanded := w.demanded(parent, name, got, least)
	empty := map[string]any{name: least}
	defaulting.Default(empty, parent)
	want := empty[name]
	if is && reflect.DeepEqual(got, want) || !is && reflect.DeepEqual(want, map[string]any{}) {
		return
	}
	if w.has(path) {
		return
	}
	if !is && demanded {
		return
	}
	if !is {
		w.found = append(w.found, fmt.Errorf("%s: %s gets no defaults when it is left out, and %s when it is {}; add default: {} "+
			"(+kubebuilder:default={})", w.where, path, inJSON(want)))
		return
	}
	if demanded {
		w.found = append(w.found, fmt.Errorf("%s: %s is %s when it is left out, and %s when it has only what is required; give its fields the "+
			"same defaults, or list it as an exception", w.where, path, inJSON(got), inJSON(want)))
		return
	}
	w.found = append(w.found, fmt.Errorf("%s: %s is %s when it is left out, and %s when it is {}; its default has to agree with those of its fields: "+
		"give them theirs, and it default: {} (+kubebuilder:default={})", w.where, path, inJSON(got), inJSON(want)))
}

// demanded reports whether property name of parent has required fields without defaults. It sets those in least to
// what the object's default, got, says.
func (*walker) demanded(parent *schema.Structural, name string, got any, least map[string]any) bool {
	p := parent.Properties[name]
	if p.ValueValidation == nil {
		return false
	}
	value, _ := got.(map[string]any)
	found := false
	for _, field := range p.ValueValidation.Required {
		if p.Properties[field].Default.Object != nil {
			continue
		}
		found = true
		if v, is := value[field]; is {
			least[field] = runtime.DeepCopyJSONValue(v)
		}
	}
	return found
}

func inJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
