package prune

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/internal/apply"
)

// Shield is an admission policy that refuses to delete the CustomResourceDefinitions of an operator's components,
// unless they are released. It belongs to the operator, and has no effect when there are none. The zero value is
// not up.
type Shield struct {
	mu sync.Mutex
	up bool
}

// ReleaseKey is the annotation of a definition that may be deleted. Its value is the UID of the definition: what
// was copied from another releases nothing.
func ReleaseKey(operator string) string { return operator + "/release" }

// ShieldName is the name of an operator's policy and of its binding.
func ShieldName(operator string) string { return operator + ".definitions" }

// ShieldRefs are the policy of an operator and its binding.
func ShieldRefs(operator string) []apply.Ref {
	return []apply.Ref{apply.RefOf(shieldObject("ValidatingAdmissionPolicy", operator)), apply.RefOf(shieldObject("ValidatingAdmissionPolicyBinding", operator))}
}

// Up puts the shield up, or brings one of an older release up to date. It takes effect within a second. It is only
// read once: after that, Up does nothing unless the shield is gone.
func (s *Shield) Up(ctx context.Context, c *apply.Client, operator, owner string, gone bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up && !gone {
		return nil
	}
	for _, m := range []*unstructured.Unstructured{shieldPolicy(operator, owner), shieldBinding(operator)} {
		if err := settle(ctx, c, m); err != nil {
			return fmt.Errorf("protect definitions by %s %s: %w", m.GetKind(), m.GetName(), err)
		}
	}
	s.up = true
	return nil
}

// revision is the annotation that says which revision of a policy the cluster has.
const revision, current = "trimtab.dev/revision", "1"

// settle creates an object unless the cluster has its present revision.
func settle(ctx context.Context, c *apply.Client, m *unstructured.Unstructured) error {
	m.SetAnnotations(map[string]string{revision: current})
	live, err := c.Get(ctx, apply.RefOf(m))
	switch {
	case apierrors.IsNotFound(err):
		if _, err = c.Create(ctx, m); errors.Is(err, apply.ErrExists) {
			return nil // by another process
		}
	case err == nil && live.GetAnnotations()[revision] != current:
		_, err = c.Apply(ctx, m, apply.Options{UID: live.GetUID()})
	}
	return err
}

// Release has the shield let a definition go, or keep it again. It returns the definition as it is then. The error
// is a conflict if the definition is not the one that was seen any more.
func Release(ctx context.Context, c *apply.Client, operator string, definition *unstructured.Unstructured, release bool) (*unstructured.Unstructured, error) {
	value := any(nil)
	if release {
		value = string(definition.GetUID())
	}
	return c.Patch(ctx, apply.RefOf(definition), map[string]any{"metadata": map[string]any{
		"uid": string(definition.GetUID()), "resourceVersion": definition.GetResourceVersion(),
		"annotations": map[string]any{ReleaseKey(operator): value},
	}})
}

// Released reports whether a definition may be deleted.
func Released(operator string, definition *unstructured.Unstructured) bool {
	return definition.GetAnnotations()[ReleaseKey(operator)] == string(definition.GetUID())
}

// Shielded reports whether a deletion was refused by the shield of an operator.
func Shielded(err error, operator string) bool { return refusedWith(err, shieldText(operator)) }

func shieldText(operator string) string {
	return "belongs to a component of " + operator
}

// shieldPolicy matches definitions with the owner label.
func shieldPolicy(operator, owner string) *unstructured.Unstructured {
	key := ReleaseKey(operator)
	m := shieldObject("ValidatingAdmissionPolicy", operator)
	m.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{
			"objectSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": owner, "operator": "Exists"}}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{"apiextensions.k8s.io"}, "apiVersions": []any{"*"}, "operations": []any{"DELETE"},
				"resources": []any{"customresourcedefinitions"},
			}},
		},
		"validations": []any{map[string]any{
			"expression": fmt.Sprintf("oldObject.metadata.?annotations[?%q].orValue('') == oldObject.metadata.uid", key),
			"messageExpression": fmt.Sprintf("'CustomResourceDefinition ' + oldObject.metadata.name + %q + oldObject.metadata.uid",
				" "+shieldText(operator)+", and all its objects would be deleted with it; delete the component instead, or first set its annotation "+key+" to "),
			"reason": "Forbidden",
		}},
	}
	return m
}

func shieldBinding(operator string) *unstructured.Unstructured {
	m := shieldObject("ValidatingAdmissionPolicyBinding", operator)
	m.Object["spec"] = map[string]any{"policyName": ShieldName(operator), "validationActions": []any{"Deny"}}
	return m
}

func shieldObject(kind, operator string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{}}
	m.SetGroupVersionKind(schema.FromAPIVersionAndKind(admission, kind))
	m.SetName(ShieldName(operator))
	return m
}
