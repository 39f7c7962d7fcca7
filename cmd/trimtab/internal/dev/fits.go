package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
)

// fits reports, before anything is replaced, whether the API server takes the definitions of a build, and whether the objects
// that it has are valid by them and keep all their fields.
func (s *session) fits(ctx context.Context, next *build, st *steps.Step) error {
	var errs []error
	names := map[string]bool{}
	for _, d := range next.definitions {
		names[d.Name] = true
		change, err := s.definitionFits(ctx, next, d)
		if change != "" {
			st.Detail("%s %s", d.Spec.Names.Kind, change)
		}
		errs = append(errs, err)
	}
	if s.current != nil {
		for _, d := range s.current.definitions {
			if !names[d.Name] {
				errs = append(errs, s.nothingLeft(ctx, d))
			}
		}
	}
	return errors.Join(errs...)
}

// definitionFits compares a definition with what the API server has, and returns what has become of it in one word.
func (s *session) definitionFits(ctx context.Context, next *build, d *apiextensionsv1.CustomResourceDefinition) (change string, err error) {
	live, err := s.live(ctx, d.Name)
	if err != nil {
		return "", err
	}
	if live == nil {
		return "new", nil
	}
	if err := s.dryRun(ctx, next, d.Name); err != nil {
		return "changed", fmt.Errorf("the API server refuses the new definition of %s, which stays as it is: %w", d.Spec.Names.Kind, err)
	}
	v := versionIn(d, storageVersion(live).Name)
	newSchema, oldSchema := v.Schema.OpenAPIV3Schema, storageVersion(live).Schema.OpenAPIV3Schema
	if equal(newSchema, oldSchema) {
		return "", nil
	}
	check, err := newChecker(oldSchema, newSchema)
	if err != nil {
		return "changed", fmt.Errorf("read the schema of %s: %w", d.Spec.Names.Kind, err)
	}
	items, err := stored(ctx, s.admin, live)
	if err != nil {
		return "changed", err
	}
	var broken []string
	var commands []string
	for _, o := range items {
		if problems := check.problems(ctx, &o); len(problems) > 0 {
			broken = append(broken, fmt.Sprintf("  %s\n    %s", name(&o), strings.Join(problems, "\n    ")))
			commands = append(commands, s.deletion(live, &o))
		}
	}
	if len(broken) == 0 {
		return "changed", nil
	}
	return "changed", fmt.Errorf("the new definition of %s does not fit %d of its %d objects:\n%s\n"+
		"The old definition stays. Change the type back, or edit or delete these objects, for example:\n  %s",
		d.Spec.Names.Kind, len(broken), len(items), strings.Join(broken, "\n"), strings.Join(commands, "\n  "))
}

// deletion is the command that deletes an object. It names the group in any case: what it deletes is gone.
func (s *session) deletion(d *apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured) string {
	return s.options.Kubectl.Line(o.GetNamespace(), "delete", d.Name, o.GetName())
}

// nothingLeft is an error if there are objects of a definition that the operator no longer has.
func (s *session) nothingLeft(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	items, err := stored(ctx, s.admin, d)
	if err != nil || len(items) == 0 {
		return err
	}
	var commands []string
	for _, o := range items {
		commands = append(commands, s.deletion(d, &o))
	}
	return fmt.Errorf("the operator no longer has the kind %s, and %d objects of it exist, which nobody would manage. Keep the kind, or delete them:\n  %s",
		d.Spec.Names.Kind, len(items), strings.Join(commands, "\n  "))
}

// live returns a definition that the API server has, or nil.
func (s *session) live(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := s.admin.Get(ctx, client.ObjectKey{Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
}

// dryRun asks the API server whether it takes a definition.
func (s *session) dryRun(ctx context.Context, next *build, name string) error {
	for _, u := range next.manifests {
		if u.GetKind() == "CustomResourceDefinition" && u.GetName() == name {
			return s.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u.DeepCopy()), client.FieldOwner("trimtab"), client.ForceOwnership, client.DryRunAll)
		}
	}
	return nil
}

// stored returns the objects of a definition.
func stored(ctx context.Context, c client.Reader, d *apiextensionsv1.CustomResourceDefinition) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(d.Spec.Group + "/" + storageVersion(d).Name)
	list.SetKind(cmp.Or(d.Spec.Names.ListKind, d.Spec.Names.Kind+"List"))
	err := c.List(ctx, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	return list.Items, err
}

// versionIn returns a version of a definition, or, if it is gone, the one that is stored from now on.
func versionIn(d *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return storageVersion(d)
}

// checker checks objects by a new schema, with the code of the API server.
type checker struct {
	before, after *structuralschema.Structural
	validator     validation.SchemaValidator
	rules         *cel.Validator // nil if the schema has none
}

// The limits of the API server for the rules of one schema: of a call, and of an object.
const (
	ruleLimit  = 1_000_000
	rulesLimit = 10_000_000
)

func newChecker(before, after *apiextensionsv1.JSONSchemaProps) (*checker, error) {
	c := &checker{}
	for from, to := range map[*apiextensionsv1.JSONSchemaProps]**structuralschema.Structural{before: &c.before, after: &c.after} {
		internal, err := internalSchema(from)
		if err == nil {
			*to, err = structuralschema.NewStructural(internal)
		}
		if err != nil {
			return nil, err
		}
	}
	internal, err := internalSchema(after)
	if err != nil {
		return nil, err
	}
	c.rules = cel.NewValidator(c.after, true, ruleLimit)
	c.validator, _, err = validation.NewSchemaValidator(internal)
	return c, err
}

func internalSchema(s *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	internal := &apiextensions.JSONSchemaProps{}
	return internal, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, internal, nil)
}

// problems returns what is wrong with an object, one line each.
func (c *checker) problems(ctx context.Context, o *unstructured.Unstructured) []string {
	object := o.DeepCopy().Object
	defaulting.Default(object, c.after)
	var lines []string
	for _, path := range pruning.PruneWithOptions(object, c.after, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		if path != "status" && !strings.HasPrefix(path, "status.") { // which the operator writes again
			lines = append(lines, fmt.Sprintf("%s: the field is gone, and its value would be lost%s", path, valueAt(o, path)))
		}
	}
	errs := validation.ValidateCustomResource(nil, object, c.validator)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.after, object)...)
	if c.rules != nil && len(errs) == 0 { // rules are for objects that are otherwise valid
		broken, _ := c.rules.Validate(ctx, nil, c.after, object, nil, rulesLimit)
		errs = append(errs, broken...)
	}
	for _, err := range errs {
		lines = append(lines, c.sentence(err))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// valueAt is the value of a field, if it is a simple one.
func valueAt(o *unstructured.Unstructured, path string) string {
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if err != nil || !found {
		return ""
	}
	switch value.(type) {
	case map[string]any, []any:
		return ""
	}
	return fmt.Sprintf(": %v", value)
}

// sentence says what is wrong with a field, and what has become of its type.
func (c *checker) sentence(err *field.Error) string {
	before, after := typeAt(c.before, err.Field), typeAt(c.after, err.Field)
	if before != "" && after != "" && before != after {
		return fmt.Sprintf("%s: was of type %s, is now of type %s, and the object has a %s", err.Field, before, after, before)
	}
	return err.Error()
}

// typeAt returns the type of the field at a path such as spec.items[0].size.
func typeAt(s *structuralschema.Structural, path string) string {
	for part := range strings.SplitSeq(path, ".") {
		part, index, list := strings.Cut(part, "[")
		if s = property(s, part); s == nil {
			return ""
		}
		if list && index != "" {
			if s = cmp.Or(s.Items, additional(s)); s == nil {
				return ""
			}
		}
	}
	return s.Type
}

func property(s *structuralschema.Structural, name string) *structuralschema.Structural {
	if p, has := s.Properties[name]; has {
		return &p
	}
	return additional(s)
}

func additional(s *structuralschema.Structural) *structuralschema.Structural {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Structural
}

// equal reports whether two schemas are the same.
func equal(a, b *apiextensionsv1.JSONSchemaProps) bool { return apiequality.Semantic.DeepEqual(a, b) }
