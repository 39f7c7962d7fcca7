package transform

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// Substitution is an [ObjectTransformer] that replaces variables in objects, such as ${DOMAIN} and ${DOMAIN:=example.org},
// as Flux does in its postBuild. Variables are replaced in the YAML of an object, so that a variable can be a number:
// replicas: ${REPLICAS}. A text that looks like a number, such as the value of a label, needs quotes in the value of the
// variable. Values can change the structure of an object, so they must not come from users of the kind.
//
// A variable without a value and without a default is an error. $${DOMAIN} is ${DOMAIN}, and in an object with a variable
// $$ is $ everywhere. Objects without one stay as they are.
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
	before, err := rendering.Plain(obj)
	if err != nil {
		return nil, err
	}
	named := before.GetKind() + " " + before.GetName()
	text, err := yaml.Marshal(before.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	if !strings.Contains(string(text), "${") {
		return obj, nil
	}
	var missing string
	replaced, err := envsubst.Eval(string(text), func(name string) (string, bool) {
		value, ok := s.Variables[name]
		if !ok && missing == "" {
			missing = name
		}
		return value, ok
	})
	switch {
	case err != nil && missing != "":
		return nil, fmt.Errorf("%s: the variable %s has no value", named, missing)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", named, err)
	}
	u, err := rendering.Decode(replaced)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: with the values of its variables: %w", named, rendering.OneLine(err))
	case u == nil || u.GetName() == "":
		return nil, errors.New(named + ": with the values of its variables it has no name")
	}
	return u, nil
}
