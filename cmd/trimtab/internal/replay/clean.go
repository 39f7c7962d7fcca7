package replay

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

// keyFile matches names of files with a private key, such as tls.key, and credential names that [plain.NamesSecret] does not know.
var keyFile = regexp.MustCompile(`(?i)(\.key|credentials?)$`)

// namesSecret reports whether a field of this name has a secret, or a list of them.
func namesSecret(key string) bool {
	return plain.NamesSecret(key) || plain.NamesSecret(strings.TrimSuffix(key, "s")) || keyFile.MatchString(key)
}

// manifest is an object as YAML, without what API servers add and without secrets. hidden reports whether there were any.
func manifest(o *unstructured.Unstructured) (text string, hidden bool, err error) {
	u := o.DeepCopy()
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetSelfLink("")
	annotations := u.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // the spec once more
	u.SetAnnotations(annotations)
	object := hide(u.Object, false, &hidden)
	out, err := yaml.Marshal(object)
	return string(out), hidden, err
}

// hide returns a value without secrets. secret: the texts in it are secrets, but for those that say where one is.
func hide(v any, secret bool, hidden *bool) any {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		for key, value := range v {
			refers := key == "name" || key == "namespace" || key == "key" || key == "kind" || key == "apiVersion"
			v[key] = hide(value, secret && !refers || namesSecret(key) || key == "value" && namesSecret(name), hidden)
		}
		return v
	case []any:
		for i, value := range v {
			v[i] = hide(value, secret, hidden)
		}
		return v
	case string:
		safe := plain.Safe(v)
		if secret && v != "" {
			safe = plain.Hidden
		}
		*hidden = *hidden || safe != v
		return safe
	}
	return v
}
