package fault

import (
	"context"
	"errors"
	"net/http"
)

// What calls to the outside fail with. A wrapper may translate them into the vendor's errors.
var (
	// ErrNoAnswer means that no answer came; the call may have taken effect.
	ErrNoAnswer error = timeout("fault: no answer came in time")
	// ErrThrottled means that the vendor refused for now.
	ErrThrottled = errors.New("fault: too many requests, try again later")
	// ErrUnavailable means that the vendor failed before doing anything.
	ErrUnavailable = errors.New("fault: internal error of the vendor")
	// ErrDead means that the calling process was killed. Nobody should see it.
	ErrDead = errors.New("fault: this process was killed")
)

type timeout string

func (t timeout) Error() string { return string(t) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Read makes a call to the outside that changes nothing. do gets the outside to look at,
// which may be an earlier state of it; it must use no other.
func Read[O ExternalAPI, R any](ctx context.Context, env *Env, what string, do func(O) (R, error)) (R, error) {
	return call(ctx, env, what, false, do)
}

// Write makes a call to the outside that may change something.
func Write[O ExternalAPI, R any](ctx context.Context, env *Env, what string, do func(O) (R, error)) (R, error) {
	return call(ctx, env, what, true, do)
}

// HTTP returns a transport to a vendor with an HTTP API: put it into the vendor's client. GET,
// HEAD and OPTIONS are reads, all else are writes.
func HTTP[O ExternalAPI](env *Env, serve func(O) http.Handler) http.RoundTripper {
	return transport[O]{env, serve}
}
