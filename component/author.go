package component

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
)

const (
	// overtime is how long after the deadline of its pass a renderer or a hook may still return by itself.
	overtime = 2 * time.Second
	// maxAbandoned bounds the calls that have not returned, of which a component has one at most. Each holds a
	// goroutine and whatever it uses, such as a copy of its component; beyond the bound nothing is called.
	maxAbandoned = 5000
)

// authors calls renderers and hooks. A call that does not return is abandoned: its pass ends with an error,
// and nothing more is called for its component until the call has returned. The zero value is ready to use.
type authors struct {
	mu sync.Mutex
	// abandoned are the calls that have not returned, and what was called.
	abandoned map[types.UID]string
	// returned is called with a component whose call has returned after all. Nil calls nothing.
	returned func(...types.NamespacedName)
}

// abandonedError is the error of a call that does not return.
type abandonedError struct{ text string }

func (e *abandonedError) Error() string { return e.text }

func isAbandoned(err error) bool {
	_, is := errors.AsType[*abandonedError](err)
	return is
}

// call calls f, which is what of obj, until ctx is done. A panic and the end of its goroutine are errors. f
// must not touch what its caller uses after the call was abandoned.
func (a *authors) call(ctx context.Context, obj client.Object, what string, f func() error) error {
	if err := a.stuck(obj.GetUID()); err != nil {
		return err
	}
	answers := make(chan error, 1)
	go func() {
		var err error = &guard.ExitError{Code: "the operator", Method: "the " + what}
		defer func() { answers <- err }()
		_, err = guard.Call("the operator", "the "+what, func() (struct{}, error) { return struct{}{}, f() })
	}()
	select {
	case err := <-answers:
		return err
	case <-ctx.Done():
	}
	over := time.NewTimer(overtime)
	defer over.Stop()
	select {
	case err := <-answers:
		return err
	case <-over.C:
	}
	a.abandon(obj, what, answers)
	return a.stuck(obj.GetUID())
}

// stuck returns why nothing may be called for a component; nil if it may.
func (a *authors) stuck(uid types.UID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch what, is := a.abandoned[uid]; {
	case is:
		return &abandonedError{fmt.Sprintf("the %s has not returned after the deadline of the pass; renderer and hooks are not called "+
			"for this component until it does: it must obey its context, or the operator must be restarted", what)}
	case len(a.abandoned) >= maxAbandoned:
		return &abandonedError{fmt.Sprintf("renderers and hooks of %d components have not returned after their deadlines; none is called until "+
			"some do: restart the operator; they must obey their contexts", maxAbandoned)}
	}
	return nil
}

// abandon notes a call of obj that has not returned, until it does.
func (a *authors) abandon(obj client.Object, what string, answers <-chan error) {
	uid, name := obj.GetUID(), client.ObjectKeyFromObject(obj)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abandoned == nil {
		a.abandoned = map[types.UID]string{}
	}
	a.abandoned[uid] = what
	go func() {
		<-answers //nolint:errcheck // nobody waits for it
		a.mu.Lock()
		delete(a.abandoned, uid)
		a.mu.Unlock()
		if a.returned != nil {
			a.returned(name)
		}
	}()
}
