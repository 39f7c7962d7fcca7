package fault

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// Becomes returns s with the expectation that obj's condition is True in the end, for the
// current generation if the condition or the status has an observedGeneration.
func (s Step) Becomes(obj client.Object, condition string) Step {
	return s.Expecting(func(ctx context.Context, w *World) error {
		u, err := read(ctx, w, obj)
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			m, _ := c.(map[string]any)
			if m["type"] != condition {
				continue
			}
			if m["status"] != string(metav1.ConditionTrue) {
				return fmt.Errorf("%s of %s is %v: %v: %v", condition, obj.GetName(), m["status"], m["reason"], m["message"])
			}
			if seen, ok := observedGeneration(u, m); ok && seen != u.GetGeneration() {
				return fmt.Errorf("%s of %s is True for generation %d, the object has %d", condition, obj.GetName(), seen, u.GetGeneration())
			}
			return nil
		}
		return fmt.Errorf("%s has no condition %s; its status is %v", obj.GetName(), condition, u.Object["status"])
	})
}

// observedGeneration returns the generation that a condition speaks of, or else the status it
// is in; false if neither says.
func observedGeneration(u *unstructured.Unstructured, condition map[string]any) (int64, bool) {
	if seen, ok, _ := unstructured.NestedInt64(condition, "observedGeneration"); ok {
		return seen, true
	}
	seen, ok, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return seen, ok
}

// Has returns s with the expectation that obj has these fields in the end. They are written as in a manifest, in YAML or JSON:
//
//	fault.Merge(shop, `{"spec":{"size":3}}`).Has(deployment, `status: {readyReplicas: 3}`)
//
// Maps may have other fields besides, lists have as many elements as are given, and null is a field that is absent. If fields
// of the status are among them and it has an observedGeneration, that must be the current one.
func (s Step) Has(obj client.Object, fields string) Step {
	want, err := fieldsIn(fields)
	if err != nil {
		s.wrong = cmp.Or(s.wrong, error(sandbox.MisuseError(fmt.Sprintf("Has: %v; write the fields as in a manifest, for example `status: {phase: Running}`, not %q",
			err, beginning(fields)))))
		return s
	}
	return s.Expecting(func(ctx context.Context, w *World) error {
		u, err := read(ctx, w, obj)
		if err != nil {
			return err
		}
		if err := differs(obj.GetName(), "", u.Object, want); err != nil {
			return err
		}
		if _, ok := want["status"]; !ok {
			return nil
		}
		if seen, ok := observedGeneration(u, nil); ok && seen != u.GetGeneration() {
			return fmt.Errorf("the status of %s is of generation %d, the object has %d", obj.GetName(), seen, u.GetGeneration())
		}
		return nil
	})
}

// fieldsIn reads fields in YAML or JSON, with numbers as the API server's client returns them.
func fieldsIn(text string) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(asJSON, &fields); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, errors.New("there are no fields")
	}
	return fields, nil
}

// differs says where a value at a path in the object with this name does not have what is wanted of it.
func differs(name, path string, got, want any) error {
	fields, isMap := got.(map[string]any)
	if wanted, ok := want.(map[string]any); ok && isMap {
		return fieldsDiffer(name, path, fields, wanted)
	}
	elements, isList := got.([]any)
	if wanted, ok := want.([]any); ok && isList && len(elements) == len(wanted) {
		for i := range wanted {
			if err := differs(name, fmt.Sprintf("%s[%d]", path, i), elements[i], wanted[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !isMap && !isList && got == want {
		return nil
	}
	return fmt.Errorf("%s of %s is %s, want %s", path, name, inJSON(got), inJSON(want))
}

// fieldsDiffer says where a map does not have the fields that are wanted of it.
func fieldsDiffer(name, path string, got, want map[string]any) error {
	for _, field := range slices.Sorted(maps.Keys(want)) {
		at := strings.TrimPrefix(path+"."+field, ".")
		value, ok := got[field]
		switch {
		case ok && want[field] == nil:
			return fmt.Errorf("%s of %s is %s, want none", at, name, inJSON(value))
		case !ok && want[field] == nil:
			continue
		case !ok:
			return fmt.Errorf("%s has no %s, want %s", name, at, inJSON(want[field]))
		}
		if err := differs(name, at, value, want[field]); err != nil {
			return err
		}
	}
	return nil
}

// inJSON is a value in a message.
func inJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return beginning(string(text))
}

// Gone returns s with the expectation that obj does not exist in the end.
func (s Step) Gone(obj client.Object) Step {
	return s.Expecting(func(ctx context.Context, w *World) error {
		u, err := read(ctx, w, obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%s still exists; its finalizers: %s", obj.GetName(), strings.Join(u.GetFinalizers(), ", "))
	})
}

// Refused returns s with the expectation that the API server or a webhook refuses what s does, with this text in the reason. Nothing
// has changed then.
func (s Step) Refused(reason string) Step {
	do := s.Do
	if do == nil || reason == "" {
		s.wrong = cmp.Or(s.wrong, error(sandbox.MisuseError("Refused: say what is refused, for example fault.Create(wrong).Refused(\"spec.size\")")))
		return s
	}
	s.Do = func(ctx context.Context, w *World) error {
		switch err := do(ctx, w); {
		case err == nil:
			return fmt.Errorf("it was not refused, want a refusal with %q", reason)
		case !strings.Contains(err.Error(), reason):
			return fmt.Errorf("want a refusal with %q: %w", reason, err)
		}
		return nil
	}
	s.refused, s.object, s.changed, s.early = true, nil, nil, false // so there is nothing that users could race with
	return s
}

// Expecting returns s with one more expectation.
func (s Step) Expecting(expect func(ctx context.Context, w *World) error) Step {
	before := s.Expect
	s.Expect = func(ctx context.Context, w *World) error {
		if before != nil {
			if err := before(ctx, w); err != nil {
				return err
			}
		}
		return expect(ctx, w)
	}
	return s
}

// read returns an object as it is.
func read(ctx context.Context, w *World, obj client.Object) (*unstructured.Unstructured, error) {
	return (&sandbox.World{Client: w.Client}).Read(ctx, obj)
}
