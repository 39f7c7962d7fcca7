package fault

import (
	"context"
	"net/http"
)

// Env is one process of the operator in a world.
type Env struct {
	process *process
}

func call[O Outside, R any](ctx context.Context, env *Env, what string, write bool, do func(O) (R, error)) (R, error) {
	panic("not yet")
}

type transport[O Outside] struct {
	env   *Env
	serve func(O) http.Handler
}

func (t transport[O]) RoundTrip(*http.Request) (*http.Response, error) { panic("not yet") }
