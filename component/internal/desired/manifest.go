package desired

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

// read adds what a renderer returned at one place to the set.
func (s *set) read(place string, obj client.Object) {
	if IsNil(obj) {
		s.add("%s is nil; return no object instead", place)
		return
	}
	content, err := guard.Call(fmt.Sprintf("%T", obj), "MarshalJSON", func() (map[string]any, error) {
		return contentOf(obj, s.Scheme)
	})
	if err != nil {
		s.add("%s (%T): %w", place, obj, err)
		return
	}
	s.expand(place, content)
}

// contentOf returns a copy of an object as JSON knows it.
func contentOf(obj client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	var from any = obj
	u, untyped := obj.(*unstructured.Unstructured)
	if untyped {
		from = u.Object
	}
	data, err := json.Marshal(from)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	if hasInvalidText(data) {
		return nil, errors.New("contains text that is not valid UTF-8; encode binary data as base64")
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("cannot be read as JSON: %w", err)
	}
	if untyped || content["kind"] != nil && content["apiVersion"] != nil {
		return content, nil
	}
	kind, err := kindOf(obj, scheme)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	return content, nil
}

// kindOf returns the kind of a typed object.
func kindOf(obj client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if scheme == nil {
		return schema.GroupVersionKind{}, fmt.Errorf("has no kind, and there is no scheme that knows %T", obj)
	}
	kinds, _, err := scheme.ObjectKinds(obj)
	switch {
	case err != nil || len(kinds) == 0:
		return schema.GroupVersionKind{}, fmt.Errorf("the scheme does not know %T; add its API group to the scheme", obj)
	case len(kinds) > 1:
		return schema.GroupVersionKind{}, fmt.Errorf("the scheme knows %T as several kinds; set its apiVersion and kind", obj)
	}
	return kinds[0], nil
}

// hasInvalidText reports whether encoding/json replaced bytes that are not UTF-8: it writes the
// replacement as an escape sequence, and the character itself as it is.
func hasInvalidText(data []byte) bool {
	for {
		i := bytes.Index(data, []byte(`\ufffd`))
		if i < 0 {
			return false
		}
		before := len(data[:i]) - len(bytes.TrimRight(data[:i], `\`))
		if before%2 == 0 {
			return true
		}
		data = data[i+1:]
	}
}

// expand adds an object, or the items of a list, to the set.
func (s *set) expand(place string, content map[string]any) {
	kind, _ := content["kind"].(string)
	items, isArray := content["items"].([]any)
	name, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", "name")
	if !strings.HasSuffix(kind, "List") || name != nil || !isArray && (kind != "List" || content["items"] != nil) {
		s.accept(place, content)
		return
	}
	for i, item := range items {
		place := fmt.Sprintf("%s, item %d", place, i+1)
		fields, ok := item.(map[string]any)
		if !ok {
			s.add("%s of %s is not an object", place, kind)
			continue
		}
		if of := strings.TrimSuffix(kind, "List"); of != "" && fields["kind"] == nil {
			fields["kind"], fields["apiVersion"] = of, content["apiVersion"]
		}
		s.expand(place, fields)
	}
}

// accept adds an object to the set if it can be identified.
func (s *set) accept(place string, content map[string]any) {
	d, err := identify(content)
	if err != nil {
		s.add("%s%s: %w", place, seen(content), err)
		return
	}
	clean(content)
	labels, wrong := texts(content, "labels")
	annotations, alsoWrong := texts(content, "annotations")
	wrong = slices.Concat(wrong, alsoWrong, canonical(d))
	if err := decodeSecret(d); err != nil {
		wrong = append(wrong, err)
	}
	for _, err := range wrong {
		s.add("%s: %w", d.title(), err)
	}
	delete(labels, OwnerKey(s.Name))
	s.settle(d, annotations)
	d.Manifest.SetLabels(labels)
	d.Manifest.SetAnnotations(annotations)
	d.withhold()
	d.Expires = expires(d)
	s.all = append(s.all, d)
	s.places[d] = place
}

// seen returns what is known of an object that cannot be identified.
func seen(content map[string]any) string {
	var known []string
	for _, path := range [][]string{{"kind"}, {"metadata", "name"}} {
		if text, found, err := unstructured.NestedString(content, path...); err == nil && found {
			known = append(known, text)
		}
	}
	if len(known) == 0 {
		return ""
	}
	return " (" + strings.Join(known, " ") + ")"
}

// identify returns the object that has a content, if it can be named.
func identify(fields map[string]any) (*draft, error) {
	meta, ok := fields["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("metadata is missing or not a map")
	}
	texts := map[string]string{}
	for _, f := range []struct {
		in   map[string]any
		name string
		must bool
	}{{fields, "apiVersion", true}, {fields, "kind", true}, {meta, "generateName", false}, {meta, "name", true}, {meta, "namespace", false}} {
		value, isText := f.in[f.name].(string)
		switch {
		case f.in[f.name] != nil && !isText:
			return nil, fmt.Errorf("%s is %s, which is not a text; quote it", f.name, shown(f.in[f.name]))
		case f.name == "generateName" && value != "":
			return nil, errors.New("generateName is not possible, since the object must be found again; set name")
		case f.must && value == "":
			return nil, fmt.Errorf("%s is missing", f.name)
		case f.name != "apiVersion" && value != "" && len(content.IsPathSegmentName(value)) > 0:
			return nil, fmt.Errorf("%s %q %s", f.name, value, content.IsPathSegmentName(value)[0])
		}
		texts[f.name] = value
	}
	gv, err := schema.ParseGroupVersion(texts["apiVersion"])
	if err != nil || gv.Version == "" {
		return nil, fmt.Errorf("apiVersion %q is not <group>/<version> or <version>", texts["apiVersion"])
	}
	d := &draft{kind: schema.GroupKind{Group: gv.Group, Kind: texts["kind"]}, needs: map[*draft]bool{}}
	d.Item.Group, d.Item.Version, d.Item.Kind = gv.Group, gv.Version, texts["kind"]
	d.Item.Namespace, d.Item.Name = texts["namespace"], texts["name"]
	d.Manifest = &unstructured.Unstructured{Object: fields}
	return d, nil
}

// clean removes what only the API server writes.
func clean(content map[string]any) {
	delete(content, "status")
	meta, _ := content["metadata"].(map[string]any)
	for _, name := range []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generateName", "generation", "managedFields",
		"resourceVersion", "selfLink", "uid",
	} {
		delete(meta, name)
	}
	for name, value := range meta {
		if value == nil || name == "namespace" && value == "" {
			delete(meta, name)
		}
	}
	dropNullTimes(content)
}

// dropNullTimes removes "creationTimestamp: null", which older generators of manifests write into
// the metadata of templates.
func dropNullTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		if meta, ok := v["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
			delete(meta, "creationTimestamp")
		}
		for _, inner := range v {
			dropNullTimes(inner)
		}
	case []any:
		for _, inner := range v {
			dropNullTimes(inner)
		}
	}
}

// texts returns the labels or annotations of an object, all of whose values must be texts.
func texts(content map[string]any, field string) (map[string]string, []error) {
	out := map[string]string{}
	value, _, _ := unstructured.NestedFieldNoCopy(content, "metadata", field)
	if value == nil {
		return out, nil
	}
	raw, ok := value.(map[string]any)
	if !ok {
		return out, []error{fmt.Errorf("the %s are %s, which is not a map", field, shown(value))}
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		text, ok := raw[key].(string)
		if !ok {
			errs = append(errs, fmt.Errorf("%s %q is %s, which is not a text; quote it", strings.TrimSuffix(field, "s"), key, shown(raw[key])))
		}
		out[key] = text
	}
	return out, errs
}

// shown names a value in a message: what is short as it is, all else by what it is.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "a text"
	default:
		return fmt.Sprint(v)
	}
}

// decodeSecret moves stringData of a Secret to data, where the API server would move it. Fields of
// stringData have no owner in the stored object, so changes to them could not be noticed.
func decodeSecret(d *draft) error {
	if d.kind != (schema.GroupKind{Kind: "Secret"}) || d.Manifest.Object["stringData"] == nil {
		return nil
	}
	plain, ok := d.Manifest.Object["stringData"].(map[string]any)
	if !ok {
		return errors.New("stringData is not a map")
	}
	data, ok := d.Manifest.Object["data"].(map[string]any)
	if !ok && d.Manifest.Object["data"] != nil {
		return errors.New("data is not a map")
	}
	if data == nil {
		data = map[string]any{}
	}
	for _, key := range slices.Sorted(maps.Keys(plain)) {
		text, ok := plain[key].(string)
		if !ok {
			return fmt.Errorf("stringData %q is not a text; quote it", key) // the value is a secret
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(d.Manifest.Object, "stringData")
	d.Manifest.Object["data"] = data
	return nil
}

// TTL is the field of a Job's spec that has it deleted some time after it has finished.
const TTL = "ttlSecondsAfterFinished"

func expires(d *draft) bool {
	if d.kind != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	has := func(u *unstructured.Unstructured) bool {
		if u == nil {
			return false
		}
		value, found, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", TTL)
		return found && value != nil
	}
	return has(d.Manifest) || has(d.Initial)
}
