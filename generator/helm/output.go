package helm

import (
	"errors"
	"fmt"
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
}

// add adds what a file or a document of one contains. set sets what is special about it, unless it is nil.
func (o *output) add(file, content string, set func(*unstructured.Unstructured, *component.Dependent)) error {
	for _, document := range documents(content) {
		m := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			return fmt.Errorf("%s: it is no YAML: %w", o.where(file, document), oneLine(err))
		}
		if len(m) == 0 {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := decode(m, u); err != nil {
			return fmt.Errorf("%s: %w", o.where(file, document), err)
		}
		if !u.IsList() {
			if err := o.addObject(file, document, u, set); err != nil {
				return err
			}
			continue
		}
		list, err := u.ToList()
		if err != nil {
			return fmt.Errorf("%s: it is no list of objects: %w", o.where(file, document), err)
		}
		for i := range list.Items {
			if err := o.addObject(file, document, &list.Items[i], set); err != nil {
				return err
			}
		}
	}
	return nil
}

// documents returns the documents of a file, in order.
func documents(content string) []string {
	split := releaseutil.SplitManifests(content)
	out := make([]string, len(split))
	for i := range out {
		out[i] = split[fmt.Sprintf("manifest-%d", i)]
	}
	return out
}

// decode decodes an object. Whole numbers are integers there.
func decode(m map[string]any, into *unstructured.Unstructured) error {
	if m["apiVersion"] == nil || m["kind"] == nil {
		return errors.New("it is no object: it lacks apiVersion or kind")
	}
	text, err := yaml.Marshal(m)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err != nil {
		return err
	}
	return into.UnmarshalJSON(text)
}

// addObject adds an object.
func (o *output) addObject(file, document string, u *unstructured.Unstructured, set func(*unstructured.Unstructured, *component.Dependent)) error {
	where := o.where(file, document)
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
func (o *output) where(file, document string) string {
	before, _, found := strings.Cut(o.files[file], strings.TrimSpace(document))
	if !found {
		return file
	}
	return fmt.Sprintf("%s:%d", file, strings.Count(before, "\n")+1)
}
