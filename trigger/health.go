package trigger

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/internal/metric"
	"github.com/trimtab-dev/trimtab/internal/plain"
)

var (
	up       = metric.SourceUp.GaugeVec()
	failures = metric.SourceFailures.CounterVec()
	received = metric.SourceEvents.CounterVec()
)

// registerMetrics adds them to controller-runtime's registry; doing so again is harmless.
func registerMetrics() {
	metric.Registered(up)
	metric.Registered(failures)
	metric.Registered(received)
}

// health is how a source is. The log says when it starts to fail and when it works again; /readyz names it
// while it does not work.
type health struct {
	controller, source string
	log                logr.Logger
	// tolerated is how many failures in a row do not make the process unready.
	tolerated int

	mu     sync.Mutex
	err    error
	failed int // in a row
}

// tolerated is how many calls of a source may fail in a row before /readyz says so.
const tolerated = 2

var errNotSynced = errors.New("has not been read completely yet")

// attachHealth has /readyz of the target's manager name the source while it does not work. name is the author's
// for it, and may be empty. at is its health at first.
func attachHealth[T client.Object](target Target[T], name string, tolerated int, at error) (*health, error) {
	h := newHealth(target, name, tolerated, at)
	if err := target.Manager.AddReadyzCheck("source-"+h.source, h.check); err != nil {
		return nil, fmt.Errorf("report whether source %s works: %w", h.source, err)
	}
	return h, nil
}

// newHealth is attachHealth without /readyz.
func newHealth[T client.Object](target Target[T], name string, tolerated int, at error) *health {
	registerMetrics()
	h := &health{controller: target.Controller, source: cmp.Or(name, target.Name), tolerated: tolerated, err: at}
	h.log = target.Log.WithValues("source", h.source)
	h.gauge(at == nil)
	failures.WithLabelValues(h.controller, h.source) // begins at zero
	if at != nil {
		h.failed = tolerated + 1
	}
	return h
}

// end takes the source out of the metrics.
func (h *health) end() {
	up.DeleteLabelValues(h.controller, h.source)
	failures.DeleteLabelValues(h.controller, h.source)
}

// works notes a success.
func (h *health) works() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil && h.failed > 0 {
		h.log.V(1).Info("the source works", "after", h.failed)
	}
	h.err, h.failed = nil, 0
	h.gauge(true)
}

// fails notes a failure and reports whether it is logged, as the first of a row is.
func (h *health) fails(err error) bool {
	failures.WithLabelValues(h.controller, h.source).Inc()
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.failed == 0 || errors.Is(h.err, errNotSynced)
	if first {
		h.log.Error(err, "the source failed; it is tried again", "stack", guard.Stack(err))
	}
	h.err = err
	h.failed++
	h.gauge(h.failed <= h.tolerated)
	return first
}

// misses counts a failure that does not concern the source as a whole.
func (h *health) misses() { failures.WithLabelValues(h.controller, h.source).Inc() }

// check is the source's part of /readyz.
func (h *health) check(*http.Request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed <= h.tolerated {
		return nil
	}
	return errors.New(plain.Error(h.err))
}

func (h *health) gauge(works bool) {
	value := 0.0
	if works {
		value = 1
	}
	up.WithLabelValues(h.controller, h.source).Set(value)
}

func (h *health) count(result string) { received.WithLabelValues(h.controller, h.source, result).Inc() }
