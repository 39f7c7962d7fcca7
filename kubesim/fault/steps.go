package fault

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// Create creates an object, in namespace "default" if its kind needs a namespace and it has none. If its Go type sends empty
// fields for which the CustomResourceDefinition has defaults, [CreateYAML] is the way out.
func Create(obj client.Object) Step {
	return Step{
		Name: "create " + beginning(obj.GetName()),
		Do: func(ctx context.Context, w *World) error {
			return withWayOut(obj, w.Client.Create(ctx, inDefault(w, obj)))
		},
		object: obj, onObject: true,
	}
}

// emptyValue is how the API server says that it refuses a value which a Go type has if nobody sets it.
var emptyValue = regexp.MustCompile(`(?:Unsupported|Invalid) value: (?:""|"null"|null|0|"0"|\{\}|"object"|\[\])(?:[:,\]]|$)`)

// withWayOut adds to the error of a create what to do if the object has a field that is empty.
func withWayOut(obj client.Object, err error) error {
	if _, manifest := obj.(*unstructured.Unstructured); manifest || !apierrors.IsInvalid(err) || !emptyValue.MatchString(err.Error()) {
		return err
	}
	return fmt.Errorf("%w; a field of a Go type may be sent although it is empty, and then a default of the CustomResourceDefinition does not count: "+
		"set it, or create the object from a manifest with fault.CreateYAML", err)
}

// CreateYAML creates the object in a manifest. It panics if the manifest is not valid or holds several objects.
func CreateYAML(manifest string) Step {
	obj, err := onlyObject(manifest)
	if err != nil {
		panic(fmt.Sprintf("fault.CreateYAML: the manifest %v\n%s", err, manifest))
	}
	return Create(obj)
}

// CreateFile creates the object in a file, such as one of the operator's samples, as [CreateYAML] does. The path is relative to
// the folder of the test. If the file cannot be used, [Run] says why.
func CreateFile(path string) Step {
	wrong := func(format string, args ...any) Step {
		return Step{Name: "create " + beginning(path), wrong: sandbox.MisuseError("fault.CreateFile: " + fmt.Sprintf(format, args...))}
	}
	manifest, err := os.ReadFile(path)
	if err != nil {
		folder, _ := os.Getwd() // else the path alone has to do
		return wrong("%v; give the path of a manifest, relative to the folder of the test, which is %s", err, folder)
	}
	obj, err := onlyObject(string(manifest))
	if err != nil {
		return wrong("%s %v", path, err)
	}
	return Create(obj)
}

// onlyObject is the object in a manifest of one.
func onlyObject(manifest string) (*unstructured.Unstructured, error) {
	objects, err := objectsIn(manifest)
	switch {
	case err != nil:
		return nil, fmt.Errorf("is not one named object: %w", err)
	case len(objects) > 1:
		names := make([]string, len(objects))
		for i, u := range objects {
			names[i] = u.GetKind() + " " + u.GetName()
		}
		return nil, fmt.Errorf("holds %d objects, %s; create each of them in a step of its own, with fault.CreateYAML or from a file of its own",
			len(objects), strings.Join(names, " and "))
	case len(objects) == 0:
		return nil, errors.New("is not one named object: it is empty")
	case objects[0].GetKind() == "" || objects[0].GetName() == "":
		return nil, errors.New("is not one named object: it needs a kind and metadata.name")
	}
	return objects[0], nil
}

// objectsIn returns the objects in the documents of a text that are not empty.
func objectsIn(text string) (all []*unstructured.Unstructured, err error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			all = append(all, u)
		}
	}
}

// Merge changes an object by a JSON merge patch.
func Merge(obj client.Object, patch string) Step {
	return Step{
		Name: "change " + beginning(obj.GetName()) + ": " + beginning(patch),
		Do: func(ctx context.Context, w *World) error {
			if !json.Valid([]byte(patch)) {
				return fmt.Errorf("%s is not JSON", patch)
			}
			return w.Client.Patch(ctx, inDefault(w, obj), client.RawPatch(types.MergePatchType, []byte(patch)))
		},
		early: true, onObject: true, changed: obj, patch: patch,
	}
}

// changedBy creates an object in the form that a change would give it.
func (s Step) changedBy(change Step) Step {
	return Step{
		Name: s.Name + ", changed",
		Do: func(ctx context.Context, w *World) error {
			kind, err := w.Client.GroupVersionKindFor(s.object)
			if err != nil {
				return err
			}
			text, err := json.Marshal(inDefault(w, s.object))
			if err != nil {
				return err
			}
			if text, err = jsonpatch.MergePatch(text, []byte(change.patch)); err != nil {
				return err
			}
			u := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(text, &u.Object); err != nil {
				return err
			}
			u.SetGroupVersionKind(kind)
			return w.Client.Create(ctx, u)
		},
	}
}

// beginning is as much of a text as is good for a name.
func beginning(text string) string {
	const most = 80
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Delete deletes an object. It succeeds if the object does not exist.
func Delete(obj client.Object) Step {
	return Step{
		Name: "delete " + beginning(obj.GetName()),
		Do: func(ctx context.Context, w *World) error {
			return client.IgnoreNotFound(w.Client.Delete(ctx, inDefault(w, obj)))
		},
		onObject: true, changed: obj,
	}
}

// Change changes the external API as others would, without the operator.
func Change[O ExternalAPI](name string, act func(O) error) Step {
	return Step{
		Name: name,
		Do: func(_ context.Context, w *World) error {
			o, err := externalAs[O](w.ExternalAPI, name)
			if err != nil {
				return err
			}
			return act(o)
		},
	}
}

// Wait lets time pass.
func Wait(d time.Duration) Step { return Step{Name: "wait " + d.String(), Wait: d} }

// Named returns s under another name.
func (s Step) Named(name string) Step {
	s.Name = name
	return s
}

func inDefault(w *World, obj client.Object) client.Object { return sandbox.InDefault(w.Client, obj) }

// Recreate deletes an object and creates it again as soon as it is gone. It is for Scenario.Races.
func Recreate(obj client.Object) Step { return recreate(Create(obj)) }

// recreate deletes what a step created and creates it again as soon as it is gone.
func recreate(created Step) Step {
	s := Delete(created.object)
	s.Name = "re-create " + beginning(created.object.GetName())
	s.again = &created
	return s
}

// raceSteps are what users may do besides the scenario's steps.
func (s *Scenario) raceSteps() []Step {
	if s.Races != nil {
		return s.Races
	}
	var races []Step
	for _, step := range s.Steps {
		if step.object != nil {
			gone, another := Delete(step.object), recreate(step)
			gone.victim, another.victim = step.object, step.object
			races = append(races, gone, another)
		}
	}
	for _, step := range s.Steps {
		if step.early {
			races = append(races, step)
		}
	}
	return races
}
