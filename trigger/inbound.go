package trigger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

// Inbound receives events of type E by HTTP, such as webhooks of another system, keeps the newest of each object for
// the reconciler, and wakes the objects that they concern. It answers 202 once the event is kept in memory. A
// process that does not lead keeps events, too, and wakes the objects when it leads; if it ends before, they are lost. So if
// several replicas run, the sender must reach the one that leads, or LeaderOnly must be set and the sender try again.
//
// A request must arrive within 5 seconds. The requests that are served at the same time take at most 64 MiB, or four times
// the largest MaxBody, and those of one address half of that; others are answered 503.
//
// A wake-up does not count as an event of the object: a pending retry stays pending. Pass an Inbound by pointer to
// one controller; use [Inbound.Get] in its passes.
type Inbound[T client.Object, E any] struct {
	// Name is the source's name in logs, metrics and /readyz. Empty means one made of the controller's name.
	Name string
	// Server listens. Required. Sources of one process may share it.
	Server *Server
	// Path is where events are posted, such as "/github". Required. It may have wildcards as in [http.ServeMux].
	Path string
	// Authenticate refuses requests of others, with status 401. Required; [Anyone] accepts all.
	Authenticate Authenticator
	// Decode returns the event that a request contains. Its error is the answer, with status 400. Nil means that
	// the body is the event as JSON; null is none.
	Decode func(r *http.Request, body []byte) (E, error)
	// Wakes returns the objects that an event concerns. Required. Keys without an object are ignored. It must
	// return at once. If it panics, all objects are woken, the event is not kept, and the answer is 500.
	Wakes func(event E) []types.NamespacedName
	// MaxBody is the largest body in bytes. A larger one is refused with status 413. Zero means 1 MiB.
	MaxBody int64
	// LeaderOnly has a process that does not lead keep nothing: it answers 503 with Retry-After, so that the sender tries
	// again until it reaches the one that leads. False means that such a process keeps events until it leads.
	LeaderOnly bool
	// Keep is for how many objects that do not exist, or not yet, the newest event is kept. Zero means 10,000.
	// The oldest is dropped first; if it might concern an object after all, all objects are woken.
	Keep int

	newest newest[T, E]
}

func (*Inbound[T, E]) source(T) {}

// Get returns the newest event that concerns an object, and whether there was one. It is forgotten when the object
// is deleted and when the process ends.
func (i *Inbound[T, E]) Get(obj T) (E, bool) { return i.newest.get(obj) }

// Check implements [Source].
func (i *Inbound[T, E]) Check() error {
	switch {
	case i.Server == nil || i.Server.Address == "":
		return errors.New(`a trigger.Inbound needs a Server with an address, for example &trigger.Server{Address: ":9000"}`)
	case len(i.Path) == 0 || i.Path[0] != '/':
		return fmt.Errorf("a trigger.Inbound needs a Path that begins with a slash; it is %q", i.Path)
	case i.Authenticate == nil:
		return fmt.Errorf("the trigger.Inbound at %s needs Authenticate; trigger.Anyone() accepts all requests", i.Path)
	case i.Wakes == nil:
		return fmt.Errorf("the trigger.Inbound at %s needs Wakes, which says which objects an event concerns", i.Path)
	case i.MaxBody < 0 || i.Keep < 0:
		return fmt.Errorf("the trigger.Inbound at %s cannot take %d bytes and keep %d events; leave both zero", i.Path, i.MaxBody, i.Keep)
	case i.newest.wakes != nil:
		return fmt.Errorf("the trigger.Inbound at %s is the source of two controllers; make one for each", i.Path)
	}
	return nil
}

// Watches implements [Source]: nothing but the controller's own objects.
func (*Inbound[T, E]) Watches() []client.Object { return nil }

// Needs implements [Source].
func (*Inbound[T, E]) Needs() []Need { return nil }

// Attach implements [Source].
func (i *Inbound[T, E]) Attach(target Target[T]) error {
	if err := i.newest.attach(target, i.Name, i.Keep, i.Wakes); err != nil {
		return err
	}
	return i.Server.handle(target.Manager, i.Path, i.maxBody(), http.HandlerFunc(i.receive))
}

// receive answers a request.
func (i *Inbound[T, E]) receive(w http.ResponseWriter, r *http.Request) {
	if i.LeaderOnly && !i.newest.wakes.leads() {
		i.refuse(w, errStandby)
		return
	}
	e, err := i.read(r, sync.OnceValues(func() ([]byte, error) {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, i.maxBody()))
	}))
	if err == nil {
		err = i.newest.take(r.Context(), e)
	}
	if err != nil {
		i.refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (i *Inbound[T, E]) maxBody() int64 {
	if i.MaxBody == 0 {
		return 1 << 20
	}
	return i.MaxBody
}

var (
	// errStranger is the error of a request that Authenticate refused.
	errStranger = errors.New("not authenticated")
	// errStandby is the error of a request that another process should get.
	errStandby = errors.New("this process does not lead; try again")
	// errNull is the error of a body from which there is no event.
	errNull = errors.New("the body is null, which is no event")
)

// read asks the author whose request it is and what is in it.
func (i *Inbound[T, E]) read(r *http.Request, body func() ([]byte, error)) (e E, err error) {
	var refused, unread error
	crash := guard.Aside(code, "Authenticate", func() {
		refused = i.Authenticate(r, func() (read []byte, err error) {
			read, unread = body()
			return read, unread
		})
	})
	if unread != nil {
		return e, unread
	}
	if crash != nil || refused != nil {
		i.newest.health.log.V(1).Info("a request is not authenticated", "error", plain.Error(errors.Join(crash, refused)))
		return e, errStranger
	}
	content, err := body()
	if err != nil {
		return e, err
	}
	if i.Decode == nil {
		if string(bytes.TrimSpace(content)) == "null" {
			return e, errNull
		}
		return e, json.Unmarshal(content, &e)
	}
	if crash := guard.Aside(code, "Decode", func() { e, err = i.Decode(r, content) }); crash != nil {
		i.newest.health.log.Error(crash, "an event is refused, because Decode did not return", "stack", guard.Stack(crash))
		return e, errors.New("cannot read the event")
	}
	return e, err
}

// refuse answers that an event is not kept, and why.
func (i *Inbound[T, E]) refuse(w http.ResponseWriter, err error) {
	if !errors.Is(err, errUnclear) { // which is counted
		i.newest.health.count("refused")
	}
	status, text := http.StatusBadRequest, plain.Error(err)
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isTooLarge:
		status, text = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)
	case errors.Is(err, errStranger):
		status = http.StatusUnauthorized
	case errors.Is(err, errUnclear):
		status = http.StatusInternalServerError
	case errors.Is(err, errBusy), errors.Is(err, errStandby):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Connection", "close") // otherwise the server waits for the rest of the body
	http.Error(w, text, status)
}
