package replay

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

// secret matches names of fields that have a secret in them, and not the name of a Secret.
var secret = regexp.MustCompile(`(?i)^(password|passwd|passphrase|token|secret|credentials?|(api|access|secret|private)_?key|client_?secret)$`)

// manifest is an object as YAML, without what API servers add and without secrets. hidden reports whether there were any.
func manifest(o *unstructured.Unstructured) (text string, hidden bool, err error) {
	u := o.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetSelfLink("")
	annotations := u.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // the spec once more
	u.SetAnnotations(annotations)
	object := hide(u.Object, &hidden)
	out, err := yaml.Marshal(object)
	return string(out), hidden, err
}

// hide returns a value without secrets.
func hide(v any, hidden *bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if text, is := value.(string); is && text != "" && secret.MatchString(key) {
				v[key], *hidden = plain.Hidden, true
				continue
			}
			v[key] = hide(value, hidden)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = hide(value, hidden)
		}
		return v
	case string:
		safe := plain.Safe(v)
		*hidden = *hidden || safe != v
		return safe
	}
	return v
}
