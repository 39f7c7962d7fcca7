package crdcheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// longest is the length of the longest name that an object can have.
const longest = 253

// References returns every field in the spec of crd by which an object depends on another one, but not by its name. Such
// fields are those that end in Instance, Ref or Reference, or their plurals, or in one of these and Selector, Labels or Annotations. A string needs minLength 1,
// maxLength 253 and a pattern: the API server then refuses a name that no object can have, and nobody waits for it. The
// same is true of the name in an object that has no other field. A label selector, or a map, finds any number of objects, also none
// or the wrong ones; an ObjectReference of Kubernetes says more than a name, and any kind. Objects with further fields, such as a namespace
// or a key, are not checked. Labels may be used in an operator, to find objects in its cache. except are paths, such as
// spec.poolRef, of fields that are meant so; one that is not needed is an error, too.
func References(crd *apiextensionsv1.CustomResourceDefinition, except ...string) error {
	e := exceptions{except, map[string]bool{}}
	return errors.Join(references(crd, e), e.needless(crd.Name))
}

func references(crd *apiextensionsv1.CustomResourceDefinition, e exceptions) error {
	r := finder{exceptions: e}
	for _, v := range crd.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		r.where = fmt.Sprintf("CRD %s, version %s", crd.Name, v.Name)
		spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
		r.below("spec", &spec)
	}
	return errors.Join(r.found...)
}

// finder collects what it finds in schemas.
type finder struct {
	exceptions

	where string
	found []error
}

// below checks the fields of a value at path.
func (r *finder) below(path string, s *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, at := s.Properties[name], path+"."+name
		if !dependency(name) {
			r.below(at, &p)
			continue
		}
		if problem := reference(&p); problem != "" {
			if !r.has(at) {
				r.found = append(r.found, fmt.Errorf("%s: %s %s", r.where, at, problem))
			}
			continue
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		r.below(path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		r.below(path+"{}", s.AdditionalProperties.Schema)
	}
}

// dependency tells names of fields that say on which object another depends.
func dependency(name string) bool {
	for _, by := range []string{"Selector", "Labels", "Annotations"} {
		name = strings.TrimSuffix(name, by)
	}
	name = strings.TrimSuffix(name, "s")
	return slices.ContainsFunc([]string{"Instance", "Ref", "Reference"}, func(s string) bool { return strings.HasSuffix(name, s) })
}

// reference returns what is wrong with a field by which an object depends on another.
func reference(s *apiextensionsv1.JSONSchemaProps) string {
	_, labels := s.Properties["matchLabels"]
	_, path := s.Properties["fieldPath"]
	_, version := s.Properties["resourceVersion"]
	name, named := s.Properties["name"]
	if s.Type == "array" && s.Items != nil && s.Items.Schema != nil {
		return reference(s.Items.Schema)
	}
	switch {
	case labels:
		return "is a dependency by labels, which finds any number of objects; make it the name of one object"
	case s.Type == "object" && s.AdditionalProperties != nil && len(s.Properties) == 0:
		return "is a dependency by a map, whose keys say nothing about a kind; make it the name of one object"
	case path && version:
		return "is an ObjectReference, which can mean any kind and namespace; make it the name of one object"
	case s.Type == "string":
		return unbounded(s)
	case named && len(s.Properties) == 1:
		return unbounded(&name)
	}
	return ""
}

// unbounded returns what is missing in the schema of a name.
func unbounded(s *apiextensionsv1.JSONSchemaProps) string {
	if len(s.Enum) > 0 {
		return ""
	}
	var missing []string
	if s.MinLength == nil || *s.MinLength < 1 {
		missing = append(missing, "minLength: 1")
	}
	if s.MaxLength == nil || *s.MaxLength > longest {
		missing = append(missing, "maxLength: 253")
	}
	if s.Pattern == "" && s.Format == "" {
		missing = append(missing, `pattern: ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	}
	if len(missing) == 0 {
		return ""
	}
	return "takes texts that are no name of an object; add " + strings.Join(missing, ", ")
}
