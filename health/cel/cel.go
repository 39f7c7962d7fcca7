// Package cel compiles rules about the health of objects from expressions in the Common Expression
// Language. [Compiler] is all there is. Only operators that import this package link the language.
package cel

import (
	"errors"
	"fmt"

	language "github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"

	"github.com/trimtab-dev/trimtab/health"
)

const (
	// maxLength is how many bytes an expression may have.
	maxLength = 4096
	// costLimit is what one evaluation may cost. It is that of one expression in a
	// CustomResourceDefinition: about a tenth of a second.
	costLimit = 1_000_000
)

// Compiler compiles expressions such as status.phase == "Running". The variables are apiVersion, kind,
// metadata, spec, status and data of the object, empty maps if it has none, and self, the whole of it.
// An expression that asks for a field that does not exist yet has no value; the object is in progress
// then. Optional fields are written as status.?phase.orValue("").
//
// The zero value is ready to use. Expressions are limited in length and in what an evaluation costs.
type Compiler struct{}

// Compile implements [health.Compiler].
func (Compiler) Compile(e health.Expressions) (health.Rule, error) {
	options := []language.EnvOption{language.OptionalTypes()}
	for _, name := range []string{"self", "apiVersion", "kind", "metadata", "spec", "status", "data"} {
		options = append(options, language.Variable(name, language.DynType))
	}
	env, err := language.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	var r rule
	var problems []error
	for _, x := range []struct {
		name, text string
		status     health.Status
	}{{"inProgress", e.InProgress, health.InProgress}, {"failed", e.Failed, health.Failed}, {"current", e.Current, health.Current}} {
		if x.text == "" {
			continue
		}
		program, err := compile(env, x.text)
		if err != nil {
			problems = append(problems, fmt.Errorf("expression %s: %w", x.name, err))
		}
		r = append(r, clause{x.name, x.text, x.status, program})
	}
	if len(r) == 0 {
		return nil, errors.New("none of inProgress, failed and current is set")
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return r, nil
}

func compile(env *language.Env, text string) (language.Program, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(text), maxLength)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		wrong := issues.Errors()[0]
		return nil, fmt.Errorf("%s: line %d, column %d: %s", text, wrong.Location.Line(), wrong.Location.Column()+1, wrong.Message)
	}
	if t := ast.OutputType(); !t.IsExactType(language.BoolType) && !t.IsExactType(language.DynType) {
		return nil, fmt.Errorf("%s is a %s; it must be true or false", text, t)
	}
	return env.Program(ast, language.CostLimit(costLimit))
}

// rule is a [health.Rule]: the first true clause decides.
type rule []clause

type clause struct {
	name, text string
	status     health.Status
	program    language.Program
}

// Of implements [health.Rule].
func (r rule) Of(obj map[string]any) health.Result {
	variables := map[string]any{"self": obj}
	for _, name := range []string{"metadata", "spec", "status", "data"} {
		if variables[name] = obj[name]; obj[name] == nil {
			variables[name] = map[string]any{}
		}
	}
	variables["apiVersion"], variables["kind"] = obj["apiVersion"], obj["kind"]
	for _, c := range r {
		is, err := c.evaluate(variables)
		switch {
		case err != nil:
			return health.Result{Status: unknownIf(err), Why: fmt.Sprintf("has no answer to %s: %v", c.text, err), Path: "status"}
		case is && c.status == health.Current:
			return health.Result{Status: health.Current}
		case is:
			return health.Result{Status: c.status, Why: verb(c.status) + ", because " + c.text, Path: "status"}
		}
	}
	if last := r[len(r)-1]; last.status == health.Current {
		return health.Result{Status: health.InProgress, Why: "is not ready until " + last.text, Path: "status"}
	}
	return health.Result{Status: health.Current}
}

func (c clause) evaluate(variables map[string]any) (bool, error) {
	value, _, err := c.program.Eval(variables)
	if err != nil {
		return false, err
	}
	is, ok := value.Value().(bool)
	if !ok {
		return false, errors.New("the value is neither true nor false")
	}
	return is, nil
}

// unknownIf returns what an object is that an expression cannot judge. A field that is not there yet may
// come; an expression that costs too much is not evaluated again with another result.
func unknownIf(err error) health.Status {
	if _, canceled := errors.AsType[interpreter.EvalCancelledError](err); canceled {
		return health.Unknown
	}
	return health.InProgress
}

func verb(s health.Status) string {
	if s == health.Failed {
		return "has failed"
	}
	return "is not ready"
}
