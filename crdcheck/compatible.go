package crdcheck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Compatible returns every change that breaks something when before is replaced by after: objects that are stored would be
// refused when they are written again, would lose fields or read differently, or clients that send what was right before
// would be refused. What is only added, and what is allowed in addition, breaks nothing. Each version is compared with itself.
func Compatible(before, after *apiextensionsv1.CustomResourceDefinition) error {
	c := comparison{where: "CRD " + before.Name}
	c.definition(before, after)
	for _, was := range before.Spec.Versions {
		c.where = fmt.Sprintf("CRD %s, version %s", before.Name, was.Name)
		i := slices.IndexFunc(after.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == was.Name })
		if i < 0 {
			c.removed(before, was)
			continue
		}
		c.version(was, after.Spec.Versions[i])
	}
	return errors.Join(c.found...)
}

// comparison collects what breaks.
type comparison struct {
	where string
	found []error
}

func (c *comparison) breaks(format string, args ...any) {
	c.found = append(c.found, fmt.Errorf(c.where+": "+format, args...))
}

// definition compares what all versions have in common.
func (c *comparison) definition(before, after *apiextensionsv1.CustomResourceDefinition) {
	if before.Name != after.Name {
		c.breaks("it is called %s now, which is another CRD; objects of the old one stay there", after.Name)
		return
	}
	if before.Spec.Scope != after.Spec.Scope {
		c.breaks("the scope is %s instead of %s; the API server refuses that, and a new CRD has to have another name", after.Spec.Scope, before.Spec.Scope)
	}
	if before.Spec.Names.Kind != after.Spec.Names.Kind {
		c.breaks("the kind is %s instead of %s; manifests of the old one are refused", after.Spec.Names.Kind, before.Spec.Names.Kind)
	}
	if before.Spec.PreserveUnknownFields && !after.Spec.PreserveUnknownFields {
		c.breaks("preserveUnknownFields is false now; fields without a schema are removed")
	}
}

// removed reports a version that there is no longer.
func (c *comparison) removed(before *apiextensionsv1.CustomResourceDefinition, was apiextensionsv1.CustomResourceDefinitionVersion) {
	switch {
	case was.Storage || slices.Contains(before.Status.StoredVersions, was.Name):
		c.breaks("it is removed while objects are stored in it, which the API server refuses; keep it with served: false until all of them " +
			"have been written again, and remove it from status.storedVersions then")
	case was.Served:
		c.breaks("it is removed; clients that use it fail. Deprecate it first, and keep it with served: false for one release")
	}
}

// version compares a version with itself.
func (c *comparison) version(was, is apiextensionsv1.CustomResourceDefinitionVersion) {
	if was.Served && !is.Served {
		stored := ""
		if was.Storage && is.Storage {
			stored = ", and objects are still stored in it"
		}
		c.breaks("it is not served any more%s; clients that use it fail", stored)
	}
	had, has := cmp.Or(was.Subresources, &apiextensionsv1.CustomResourceSubresources{}), cmp.Or(is.Subresources, &apiextensionsv1.CustomResourceSubresources{})
	switch {
	case had.Status != nil && has.Status == nil:
		c.breaks("the subresource status is removed; writing the status fails")
	case had.Status == nil && has.Status != nil:
		c.breaks("the subresource status is added; a status that is written with the object is ignored")
	}
	if had.Scale != nil && has.Scale == nil {
		c.breaks("the subresource scale is removed; kubectl scale and autoscalers fail")
	}
	if was.Schema == nil || is.Schema == nil || was.Schema.OpenAPIV3Schema == nil || is.Schema.OpenAPIV3Schema == nil {
		return
	}
	c.schema("", was.Schema.OpenAPIV3Schema, is.Schema.OpenAPIV3Schema)
}

// schema compares the schemas of a value.
func (c *comparison) schema(path string, was, is *apiextensionsv1.JSONSchemaProps) {
	at := cmp.Or(path, "the object")
	if !c.sameType(at, was, is) {
		return // the rest says nothing
	}
	c.values(at, was, is)
	c.limits(at, was, is)
	c.unknown(at, was, is)
	c.required(path, was, is)
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		old := was.Properties[name]
		now, has := is.Properties[name]
		switch {
		case path == "" && (name == "metadata" || name == "apiVersion" || name == "kind"):
		case has:
			c.schema(field, &old, &now)
		case is.AdditionalProperties != nil && is.AdditionalProperties.Schema != nil:
			c.schema(field, &old, is.AdditionalProperties.Schema)
		case !keeps(is):
			c.breaks("%s is removed; it is dropped from objects that have it", field)
		}
	}
	if was.Items != nil && was.Items.Schema != nil && is.Items != nil && is.Items.Schema != nil {
		c.schema(path+"[]", was.Items.Schema, is.Items.Schema)
	}
	if was.AdditionalProperties != nil && was.AdditionalProperties.Schema != nil && is.AdditionalProperties != nil && is.AdditionalProperties.Schema != nil {
		c.schema(path+"{}", was.AdditionalProperties.Schema, is.AdditionalProperties.Schema)
	}
}

// keeps reports whether an object keeps fields that its schema does not name.
func keeps(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields || s.AdditionalProperties != nil && (s.AdditionalProperties.Allows || s.AdditionalProperties.Schema != nil)
}

// sameType compares types. It reports whether the rest can be compared.
func (c *comparison) sameType(at string, was, is *apiextensionsv1.JSONSchemaProps) bool {
	before, after := typeOf(was), typeOf(is)
	switch {
	case before == after || after == "anything" || before == "integer" && after == "number" ||
		after == intOrString && (before == "integer" || before == "string"):
		return true
	}
	c.breaks("%s is of type %s instead of %s", at, after, before)
	return false
}

const intOrString = "integer or string"

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	if s.XIntOrString {
		return intOrString
	}
	return cmp.Or(s.Type, "anything")
}

// values compares which values there are, and which one is meant by none.
func (c *comparison) values(at string, was, is *apiextensionsv1.JSONSchemaProps) {
	switch {
	case len(is.Enum) > 0 && len(was.Enum) == 0:
		c.breaks("%s is limited to the values %s now", at, texts(is.Enum))
	case len(is.Enum) > 0:
		var lost []apiextensionsv1.JSON
		for _, value := range was.Enum {
			if !slices.ContainsFunc(is.Enum, func(v apiextensionsv1.JSON) bool { return equal(v, value) }) {
				lost = append(lost, value)
			}
		}
		if len(lost) > 0 {
			c.breaks("%s cannot be %s any more", at, texts(lost))
		}
	}
	switch {
	case was.Default == nil || is.Default != nil && equal(*was.Default, *is.Default):
	case is.Default == nil:
		c.breaks("%s has no default any more; it was %s", at, was.Default.Raw)
	default:
		c.breaks("%s is %s by default instead of %s; objects that leave it out change", at, is.Default.Raw, was.Default.Raw)
	}
	if was.Nullable && !is.Nullable {
		c.breaks("%s cannot be null any more", at)
	}
}

// equal compares values, not how they are written.
func equal(a, b apiextensionsv1.JSON) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a.Raw) != nil || json.Compact(&y, b.Raw) != nil {
		return bytes.Equal(a.Raw, b.Raw)
	}
	return x.String() == y.String()
}

func texts(values []apiextensionsv1.JSON) string {
	var out bytes.Buffer
	for i, v := range values {
		if i > 0 {
			out.WriteString(", ")
		}
		out.Write(v.Raw)
	}
	return out.String()
}

// required reports fields that have to be there now, and that nothing sets.
func (c *comparison) required(path string, was, is *apiextensionsv1.JSONSchemaProps) {
	for _, name := range is.Required {
		if slices.Contains(was.Required, name) || is.Properties[name].Default != nil {
			continue
		}
		field := name
		if path != "" {
			field = path + "." + name
		}
		if _, known := was.Properties[name]; known {
			c.breaks("%s is required now; give it a default, or leave it optional", field)
			continue
		}
		c.breaks("%s is new and required; give it a default, or make it optional", field)
	}
}

// unknown compares what becomes of fields that the schema does not name, and how lists and maps are merged.
func (c *comparison) unknown(at string, was, is *apiextensionsv1.JSONSchemaProps) {
	if keeps(was) && !keeps(is) {
		c.breaks("%s drops fields that its schema does not name now", at)
	}
	if before, after := listType(was), listType(is); before != after && was.Type == "array" {
		c.breaks("%s is a list of type %s instead of %s; server-side apply merges it in another way, and it may be refused", at, after, before)
	} else if !slices.Equal(was.XListMapKeys, is.XListMapKeys) {
		c.breaks("the key of the list %s is %q instead of %q", at, is.XListMapKeys, was.XListMapKeys)
	}
}

func listType(s *apiextensionsv1.JSONSchemaProps) string {
	if s.XListType == nil {
		return "atomic"
	}
	return *s.XListType
}
