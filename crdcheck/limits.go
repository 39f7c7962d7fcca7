package crdcheck

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// limits compares what restricts a value.
func (c *comparison) limits(at string, was, is *apiextensionsv1.JSONSchemaProps) {
	upper(c, at, "maxLength", was.MaxLength, is.MaxLength)
	upper(c, at, "maxItems", was.MaxItems, is.MaxItems)
	upper(c, at, "maxProperties", was.MaxProperties, is.MaxProperties)
	upper(c, at, "maximum", was.Maximum, is.Maximum)
	none := new(int64)
	lower(c, at, "minLength", cmp.Or(was.MinLength, none), cmp.Or(is.MinLength, none))
	lower(c, at, "minItems", cmp.Or(was.MinItems, none), cmp.Or(is.MinItems, none))
	lower(c, at, "minProperties", cmp.Or(was.MinProperties, none), cmp.Or(is.MinProperties, none))
	lower(c, at, "minimum", was.Minimum, is.Minimum)
	if is.ExclusiveMaximum && !was.ExclusiveMaximum && is.Maximum != nil && was.Maximum != nil && *is.Maximum == *was.Maximum {
		c.breaks("%s cannot be its maximum %v itself any more", at, *is.Maximum)
	}
	if is.ExclusiveMinimum && !was.ExclusiveMinimum && is.Minimum != nil && was.Minimum != nil && *is.Minimum == *was.Minimum {
		c.breaks("%s cannot be its minimum %v itself any more", at, *is.Minimum)
	}
	if is.MultipleOf != nil && (was.MultipleOf == nil || *is.MultipleOf != *was.MultipleOf) {
		c.breaks("%s has to be a multiple of %v now", at, *is.MultipleOf)
	}
	if is.Pattern != "" && is.Pattern != was.Pattern {
		c.breaks("%s has to match the pattern %s now", at, is.Pattern)
	}
	if is.Format != "" && is.Format != was.Format {
		c.breaks("%s has to have the format %s now", at, is.Format)
	}
	if is.UniqueItems && !was.UniqueItems {
		c.breaks("%s cannot have equal entries any more", at)
	}
	c.rules(at, was, is)
}

// upper compares upper limits.
func upper[N int64 | float64](c *comparison, at, name string, was, is *N) {
	if is != nil && (was == nil || *is < *was) {
		c.breaks("%s has %s %v now%s", at, name, *is, instead(was))
	}
}

// lower compares lower limits.
func lower[N int64 | float64](c *comparison, at, name string, was, is *N) {
	if is != nil && (was == nil || *is > *was) {
		c.breaks("%s has %s %v now%s", at, name, *is, instead(was))
	}
}

// instead says what a limit was.
func instead[N int64 | float64](was *N) string {
	if was == nil || *was == 0 {
		return ""
	}
	return ", and " + text(*was) + " before"
}

func text[N int64 | float64](n N) string { return strconv.FormatFloat(float64(n), 'f', -1, 64) }

// rules compares rules in CEL, and combinations of schemas.
func (c *comparison) rules(at string, was, is *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range is.XValidations {
		if !slices.ContainsFunc(was.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Rule == rule.Rule }) {
			c.breaks("%s has to satisfy a new rule: %s", at, rule.Rule)
		}
	}
	for _, combined := range []struct {
		name    string
		was, is any
		none    bool
	}{
		{"allOf", was.AllOf, is.AllOf, len(is.AllOf) == 0},
		{"anyOf", was.AnyOf, is.AnyOf, len(is.AnyOf) == 0},
		{"oneOf", was.OneOf, is.OneOf, len(is.OneOf) == 0},
		{"not", was.Not, is.Not, is.Not == nil},
	} {
		if !combined.none && !reflect.DeepEqual(combined.was, combined.is) {
			c.breaks("%s has other conditions in %s; compare them by eye", at, combined.name)
		}
	}
}
