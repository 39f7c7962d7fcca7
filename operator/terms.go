package operator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
)

// terms returns the settings that apply to all controllers. It reports all problems at once.
func (s *settings) terms(name string) (loop.Terms, error) {
	t := loop.Terms{Installation: cmp.Or(s.installation, name), Namespaces: s.watchNamespaces}
	var problems []error
	if msgs := validation.IsDNS1123Label(t.Installation); len(msgs) > 0 {
		problems = append(problems, fmt.Errorf("--installation %q: %s", s.installation, strings.Join(msgs, "; ")))
	}
	var err error
	t.Adoption, err = limit("adoption-limit", s.adoptionLimit, "never, if-marked, if-identical or always", func(v string) bool {
		return slices.Contains([]string{api.AdoptionNever, api.AdoptionIfMarked, api.AdoptionIfIdentical, api.AdoptionAlways}, v)
	})
	problems = append(problems, err)
	t.Access, err = limit("access-limit", s.accessLimit, "letters from CUD, none or read-only", func(v string) bool {
		_, ok := api.AccessLetters(v)
		return ok
	})
	return t, errors.Join(append(problems, err)...)
}

// limit parses limits in the forms "LIMIT" and "NAMESPACE=LIMIT".
func limit(flag string, values []string, allowed string, valid func(string) bool) (loop.Limit, error) {
	l := loop.Limit{}
	var problems []error
	for _, v := range values {
		namespace, value, named := strings.Cut(v, "=")
		if !named {
			namespace, value = "", v
		}
		_, twice := l[namespace]
		switch {
		case named && namespace == "", !valid(value):
			problems = append(problems, fmt.Errorf("--%s %s: use %s, or NAMESPACE= followed by one of these", flag, v, allowed))
		case twice:
			problems = append(problems, fmt.Errorf("--%s %s: this limit is set twice", flag, v))
		}
		l[namespace] = value
	}
	return l, errors.Join(problems...)
}
