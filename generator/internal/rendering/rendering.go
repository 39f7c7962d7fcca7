// Package rendering is what the generators that render text have in common: objects of documents, errors with file and
// line, and functions of templates.
package rendering

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// follows finds the end of a document that another one follows.
var follows = regexp.MustCompile(`(?m)^(?:\.\.\.|---)(?:\s+(?:#.*)?)?$[\s\S]*^[^\s#.-]`)

// Decode decodes a document. It returns nil for one that is empty. Errors do not contain what is in it, which may be secret.
func Decode(document string) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	if follows.MatchString(strings.TrimLeft(strings.TrimPrefix(document, "---"), " \t\r\n")) {
		return nil, errors.New("another document follows in it; begin each with a line that is ---")
	}
	var head struct {
		APIVersion any `json:"apiVersion"`
		Kind       any `json:"kind"`
		Metadata   any `json:"metadata"`
	}
	switch err := json.Unmarshal(text, &head); {
	case string(text) == "null", string(text) == "{}":
		return nil, nil //nolint:nilnil // nothing is there, and nothing is wrong
	case err != nil, head.APIVersion == nil, head.Kind == nil:
		return nil, errLacksKind
	}
	if _, ok := head.Metadata.(map[string]any); !ok && head.Metadata != nil {
		return nil, errors.New("it is no object: its metadata are no map")
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, errors.New("it is no object")
	}
	u := &unstructured.Unstructured{Object: content}
	return u, check(u)
}

var errLacksKind = errors.New("it is no object: it lacks apiVersion or kind")

// check refuses an object whose kind is no text, and labels and annotations that are none.
func check(u *unstructured.Unstructured) error {
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		return errLacksKind
	}
	if _, err := schema.ParseGroupVersion(u.GetAPIVersion()); err != nil {
		return fmt.Errorf("it is no object: its apiVersion is %q", u.GetAPIVersion())
	}
	return texts(u)
}

// texts refuses labels and annotations that are no texts, which the API server refuses, too. Null counts as absent, as
// it does for the API server.
func texts(u *unstructured.Unstructured) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	for _, field := range []string{"annotations", "labels"} {
		values, ok := metadata[field].(map[string]any)
		if metadata[field] == nil {
			delete(metadata, field)
			continue
		}
		if !ok {
			return fmt.Errorf("the %s of the %s %s are no map", field, u.GetKind(), u.GetName())
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch value := values[key].(type) {
			case nil:
				delete(values, key)
			case string:
			default:
				return fmt.Errorf("the %s of the %s %s have %s: %v, which is no text; quote it", field, u.GetKind(), u.GetName(), key, value)
			}
		}
	}
	return nil
}

// Objects are where the objects of a rendering are, by kind, namespace and name.
type Objects map[string]string

// Add calls add with an object, or with each object of a list. It refuses one without a name and one that is there twice.
func (o Objects) Add(u *unstructured.Unstructured, where string, add func(*unstructured.Unstructured)) error {
	objects, err := Each(u)
	if err != nil {
		return fmt.Errorf("%s: it is no list of objects: %w", where, err)
	}
	for _, u := range objects {
		if err := check(u); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if u.GetName() == "" {
			return fmt.Errorf("%s: the %s has no metadata.name", where, u.GetKind())
		}
		key := KeyOf(u.GroupVersionKind().GroupKind(), u.GetNamespace(), u.GetName())
		if before := o[key]; before != "" {
			return fmt.Errorf("%s: the %s %s is there twice; the other one is in %s", where, u.GetKind(), u.GetName(), before)
		}
		o[key] = where
		add(u)
	}
	return nil
}

// KeyOf is the key of an object in [Objects].
func KeyOf(kind schema.GroupKind, namespace, name string) string {
	return strings.Join([]string{kind.String(), namespace, name}, " ")
}

// Each returns an object, or those of a list, which may have lists.
func Each(u *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !u.IsList() {
		return []*unstructured.Unstructured{u}, nil
	}
	list, err := u.ToList()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		below, err := Each(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// Plain returns a copy of an object without its type in Go. Objects of the kinds of Kubernetes need no TypeMeta.
func Plain(obj client.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	kind := obj.GetObjectKind().GroupVersionKind()
	if known, err := apiutil.GVKForObject(obj, scheme.Scheme); err == nil {
		kind = known
	} else if kind.Empty() {
		return nil, fmt.Errorf("%T %s: set its TypeMeta, so that its kind is known: %w", obj, obj.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind.Kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}
