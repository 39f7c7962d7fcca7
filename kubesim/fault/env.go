package fault

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
)

// The errors of disturbed calls to the external API. A wrapper may translate them into errors of that API.
var (
	// ErrNoAnswer means that there was no answer. The call may have taken effect.
	ErrNoAnswer = disturb.ErrNoAnswer
	// ErrThrottled means that the external API throttles requests.
	ErrThrottled = disturb.ErrThrottled
	// ErrUnavailable means that the external API failed and the call had no effect.
	ErrUnavailable = disturb.ErrUnavailable
	// ErrDead means that the calling process was killed. No running process gets it.
	ErrDead = disturb.ErrDead
)

// Env represents one process of the operator in a run. Its calls to the external API need it.
type Env struct {
	process *run.Process
}

// Author marks a point in code that an author passes to a framework, such as a driver's method: a wrapper
// of the author's type calls it at the beginning of each method and after each effect. In a schedule of
// [Panics] it panics once; in one of [Hangs] it does not return until the process ends. Otherwise, and if
// e is nil, it does nothing.
func (e *Env) Author(what string) {
	if e != nil {
		e.process.Author(what)
	}
}

// Read makes a call to the external API that changes nothing. do gets the fake to read, which may be in
// an earlier state, and must use no other.
func Read[O ExternalAPI, R any](ctx context.Context, env *Env, what string, do func(O) (R, error)) (R, error) {
	return call(ctx, env, what, false, do)
}

// Write makes a call to the external API that may change something.
func Write[O ExternalAPI, R any](ctx context.Context, env *Env, what string, do func(O) (R, error)) (R, error) {
	return call(ctx, env, what, true, do)
}

// call is Read and Write.
func call[O ExternalAPI, R any](ctx context.Context, env *Env, what string, write bool, do func(O) (R, error)) (R, error) {
	var zero, result R
	lost, err := env.process.External(ctx, what, write, func(e *sandbox.External) (code int, err error) {
		o, err := externalAs[O](apiOf(e), what)
		if err != nil {
			return 0, err
		}
		result, err = do(o)
		if response, ok := any(result).(*http.Response); ok && response != nil {
			code = response.StatusCode
		}
		return code, err
	})
	if lost {
		return zero, err
	}
	return result, err
}

// externalAs returns what a call or step with a name is to look at.
func externalAs[O ExternalAPI](o ExternalAPI, what string) (O, error) {
	as, ok := o.(O)
	switch {
	case ok:
		return as, nil
	case o == nil:
		return as, sandbox.MisuseError(fmt.Sprintf("%q wants the external API as %v, but the scenario has no ExternalAPI", what, reflect.TypeFor[O]()))
	}
	return as, sandbox.MisuseError(fmt.Sprintf("%q wants the external API as %v, but the scenario's ExternalAPI is a %T", what, reflect.TypeFor[O](), o))
}

// newFake is an API as a sandbox wants it; nil stays nil.
func newFake(api ExternalAPI) *sandbox.External {
	if api == nil {
		return nil
	}
	e := &sandbox.External{Fake: api, Resources: func() []history.Resource { return resourcesOf(api) }}
	if c, ok := api.(Cloner); ok {
		e.Copy = func() *sandbox.External { return newFake(c.Clone()) }
	}
	return e
}

// apiOf is the inverse of newFake.
func apiOf(e *sandbox.External) ExternalAPI {
	if e == nil {
		return nil
	}
	api, _ := e.Fake.(ExternalAPI)
	return api
}

func resourcesOf(api ExternalAPI) []history.Resource {
	listed := api.Resources()
	all := make([]history.Resource, len(listed))
	for i, r := range listed {
		all[i] = history.Resource(r)
	}
	return all
}
