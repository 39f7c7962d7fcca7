package transform

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/envsubst"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Substitution is an [ObjectTransformer] that replaces variables in objects, such as ${DOMAIN} and ${DOMAIN:=example.org},
// as Flux does in its postBuild. Variables are replaced in the YAML of an object, so that a variable can be a number:
// replicas: ${REPLICAS}. A text that looks like a number, such as the value of a label, needs quotes in the value of the
// variable. Values can change the structure of an object, so they must not come from users of the kind.
//
// A variable without a value and without a default is an error. $${DOMAIN} is ${DOMAIN}.
type Substitution struct {
	// Variables are the values by names.
	Variables map[string]string
	// Match says in which objects variables are replaced. Nil means in all.
	Match func(client.Object) bool
}

// TransformObjects implements [ObjectTransformer].
func (s Substitution) TransformObjects(_, _ string, objects []client.Object) ([]client.Object, error) {
	out := make([]client.Object, len(objects))
	for i, obj := range objects {
		var err error
		if out[i], err = s.Replace(obj); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Version identifies the variables. See [component.Versioned].
func (s Substitution) Version() string {
	text, _ := json.Marshal(s.Variables) // a map of texts
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Replace replaces the variables in an object. It is a function for Each of a [component.Set].
func (s Substitution) Replace(obj client.Object) (client.Object, error) {
	if s.Match != nil && !s.Match(obj) {
		return obj, nil
	}
	named := fmt.Sprintf("%s %s", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName())
	text, err := yaml.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	var missing string
	replaced, err := envsubst.Eval(string(text), func(name string) (string, bool) {
		value, ok := s.Variables[name]
		if !ok && missing == "" {
			missing = name
		}
		return value, ok
	})
	if err != nil {
		if missing != "" {
			return nil, fmt.Errorf("%s: the variable %s has no value", named, missing)
		}
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	if replaced == string(text) {
		return obj, nil
	}
	document, err := yaml.YAMLToJSON([]byte(replaced))
	if err != nil {
		return nil, fmt.Errorf("%s: with the values of its variables it is no YAML: %w", named, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(document); err != nil {
		return nil, fmt.Errorf("%s: with the values of its variables it is no object: %w", named, err)
	}
	if u.GetName() == "" {
		return nil, errors.New(named + ": with the values of its variables it has no name")
	}
	return u, nil
}
