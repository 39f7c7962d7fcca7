package state

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Lists says which lists below a field have no order: those that a schema calls a set or a map. Nil means none.
type Lists struct {
	// by are the keys of a list of this field; one empty key means the elements themselves, nil that the
	// schema does not say that there is no order.
	by       []string
	fields   map[string]*Lists
	rest     *Lists // of a field with any name
	elements *Lists
}

// ListsOf reads the schemas of the versions in which custom resources are stored. The result is by resource and
// group: "databases.demo.dev".
func ListsOf(crds []*apiextensionsv1.CustomResourceDefinition) map[string]*Lists {
	all := map[string]*Lists{}
	for _, c := range crds {
		for _, v := range c.Spec.Versions {
			if v.Storage && v.Schema != nil {
				all[c.Spec.Names.Plural+"."+c.Spec.Group] = listsOf(v.Schema.OpenAPIV3Schema)
			}
		}
	}
	return all
}

func listsOf(schema *apiextensionsv1.JSONSchemaProps) *Lists {
	if schema == nil {
		return nil
	}
	l := &Lists{fields: map[string]*Lists{}}
	if schema.XListType != nil {
		switch *schema.XListType {
		case "map":
			l.by = schema.XListMapKeys
		case "set":
			l.by = []string{""}
		}
	}
	for name := range schema.Properties {
		of := schema.Properties[name]
		if inner := listsOf(&of); inner != nil {
			l.fields[name] = inner
		}
	}
	if schema.AdditionalProperties != nil {
		l.rest = listsOf(schema.AdditionalProperties.Schema)
	}
	if schema.Items != nil {
		l.elements = listsOf(schema.Items.Schema)
	}
	if l.by == nil && len(l.fields) == 0 && l.rest == nil && l.elements == nil {
		return nil
	}
	return l
}

func (l *Lists) field(name string) *Lists {
	if l == nil {
		return nil
	}
	if of := l.fields[name]; of != nil {
		return of
	}
	return l.rest
}

func (l *Lists) element() *Lists {
	if l == nil {
		return nil
	}
	return l.elements
}

// unordered are the keys by which a list is sorted; nil if its order is kept.
func (l *Lists) unordered() []string {
	if l == nil {
		return nil
	}
	return l.by
}

// kindOf names the kind of an object: "databases.demo.dev".
func kindOf(x Object) string {
	if x.Group == "" {
		return x.Resource
	}
	return x.Resource + "." + x.Group
}
