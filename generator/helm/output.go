package helm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
)

// output becomes a set of objects.
type output struct {
	set component.Set
	// files are the rendered files.
	files map[string]string
	// from says where each object is, by kind, namespace and name.
	from map[string]string
	// revision is that of the release, and digest identifies it; empty if that is not known.
	revision int
	digest   string
	// last is the last wave of hooks.
	last int16
}

// document is a document of a rendered file.
type document struct {
	file, text string
	object     *unstructured.Unstructured // may be a list
}

// read decodes the documents of a file, in order.
func (o *output) read(file string) ([]document, error) {
	split := releaseutil.SplitManifests(o.files[file])
	var out []document
	for i := range len(split) {
		text := split[fmt.Sprintf("manifest-%d", i)]
		// Helm joins them with line breaks, which a text at the end of a file may keep.
		u, err := decode(text + "\n")
		if err != nil {
			return nil, undecoded(o.files, file, text, err)
		}
		if u != nil {
			out = append(out, document{file, text, u})
		}
	}
	return out, nil
}

// add adds what a document contains. set sets what is special about it, unless it is nil.
func (o *output) add(d document, set func(*unstructured.Unstructured, *component.Dependent)) error {
	if !d.object.IsList() {
		return o.addObject(d, d.object, set)
	}
	list, err := d.object.ToList()
	if err != nil {
		return fmt.Errorf("%s: it is no list of objects: %w", o.where(d), err)
	}
	for i := range list.Items {
		if err := o.addObject(d, &list.Items[i], set); err != nil {
			return err
		}
	}
	return nil
}

// decode decodes a document. It returns nil for one that is empty.
func decode(document string) (*unstructured.Unstructured, error) {
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
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
		return nil, errors.New("it is no object: it lacks apiVersion or kind")
	}
	if _, ok := head.Metadata.(map[string]any); !ok && head.Metadata != nil {
		return nil, errors.New("it is no object: its metadata are no map")
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	return u, texts(u)
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

// addObject adds an object.
func (o *output) addObject(from document, u *unstructured.Unstructured, set func(*unstructured.Unstructured, *component.Dependent)) error {
	where := o.where(from)
	if u.GetName() == "" {
		return fmt.Errorf("%s: the %s has no metadata.name", where, u.GetKind())
	}
	key := strings.Join([]string{u.GroupVersionKind().GroupKind().String(), u.GetNamespace(), u.GetName()}, " ")
	if before := o.from[key]; before != "" {
		return fmt.Errorf("%s: the %s %s is there twice; the other one is in %s", where, u.GetKind(), u.GetName(), before)
	}
	o.from[key] = where
	d := o.set.Add(u)
	if strings.EqualFold(strings.TrimSpace(u.GetAnnotations()["helm.sh/resource-policy"]), "keep") {
		d.Policies(api.Policies{DeletePolicy: api.DeletePolicyOrphan})
	}
	if set != nil {
		set(u, d)
	}
	return nil
}

// where returns a file and the line in it at which a document begins, as rendered.
func (o *output) where(d document) string {
	if line := lineOf(o.files[d.file], d.text); line > 0 {
		return fmt.Sprintf("%s:%d", d.file, line)
	}
	return d.file
}
