// Package rules knows the rules by which an operator judges the health of dependents: per kind, and per
// object by annotation.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/health"
)

// Rules are the rules of one operator. The zero value has none.
type Rules struct {
	compiler health.Compiler
	kinds    map[schema.GroupKind]health.Rule

	mu sync.Mutex
	// compiled are the rules of annotations. Most objects of a kind share one.
	compiled map[string]compiled
}

type compiled struct {
	rule health.Rule
	err  error
}

// remembered is how many annotations are kept compiled.
const remembered = 1_000

// New compiles the rules for kinds. The error joins all that is wrong, by kind.
func New(c health.Compiler, kinds map[schema.GroupKind]health.Expressions) (*Rules, error) {
	r := &Rules{compiler: c, kinds: map[schema.GroupKind]health.Rule{}}
	var problems []error
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }) {
		rule, err := r.compile(kinds[kind])
		if health.Immediate(kind) {
			err = errors.New("has no status and is watched without its contents; remove the rule")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("the health of kind %s: %w", kind, err))
		}
		r.kinds[kind] = rule
	}
	return r, errors.Join(problems...)
}

// Check reports what is wrong with the annotation of an object of a kind, as the end of a sentence about it.
func (r *Rules) Check(kind schema.GroupKind, annotation string) error {
	if r == nil {
		r = &Rules{}
	}
	if health.Immediate(kind) {
		return fmt.Errorf("is not possible for kind %s, which has no status and is watched without its contents; remove the annotation", kind.Kind)
	}
	_, err := r.annotated(annotation)
	return err
}

// Of returns the rule for an object of a kind with an annotation, and nil if there is none.
func (r *Rules) Of(kind schema.GroupKind, annotation string) health.Rule {
	if r == nil {
		return nil
	}
	if annotation == "" {
		return r.kinds[kind]
	}
	rule, err := r.annotated(annotation)
	if err != nil {
		return broken{err}
	}
	return rule
}

// broken is the rule of an annotation that somebody else wrote.
type broken struct{ err error }

func (b broken) Of(map[string]any) health.Result {
	return health.Result{Status: health.Unknown, Why: "has an annotation with a health rule that " + b.err.Error(), Path: "metadata.annotations"}
}

// annotated returns the rule that an annotation says.
func (r *Rules) annotated(annotation string) (health.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.compiled[annotation]; ok {
		return c.rule, c.err
	}
	if len(r.compiled) >= remembered || r.compiled == nil {
		r.compiled = map[string]compiled{}
	}
	rule, err := r.parse(annotation)
	r.compiled[annotation] = compiled{rule, err}
	return rule, err
}

func (r *Rules) parse(annotation string) (health.Rule, error) {
	var e health.Expressions
	if err := yaml.UnmarshalStrict([]byte(annotation), &e); err != nil {
		return nil, fmt.Errorf("is not a map with inProgress, failed and current: %w", err)
	}
	rule, err := r.compile(e)
	if err != nil {
		return nil, fmt.Errorf("cannot be compiled: %w", err)
	}
	return rule, nil
}

func (r *Rules) compile(e health.Expressions) (health.Rule, error) {
	if r.compiler == nil {
		return nil, errors.New("the operator was built without a compiler of health rules; it sets component.Options.HealthCompiler")
	}
	return r.compiler.Compile(e)
}
