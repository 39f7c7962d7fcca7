package operator

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// leaseDuration is that of controller-runtime, whose leader tries to renew its lease for 10 s before it gives up.
	leaseDuration = 15 * time.Second
	// leaseMargin is how long before the end of its lease a replica stops writing: a request takes some time to arrive.
	leaseMargin = 2 * time.Second
)

// errLeaseLost is why a request was not sent, or why a process ended.
var errLeaseLost = errors.New("this replica has not renewed its lease in time, and another one may lead now")

// fence keeps a replica from writing that led and whose lease may have run out: it was suspended, or could not reach the API
// server. Leader election notices that, too, but only after it has tried to renew the lease for 10 s, during which passes go
// on and others begin.
type fence struct {
	lease   string // its path in URLs
	renewed atomic.Pointer[time.Time]
	lost    chan struct{}
}

func newFence(namespace, name string) *fence {
	return &fence{lease: "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + name, lost: make(chan struct{}, 1)}
}

// config returns c with the requests of a manager fenced. It has no effect before the replica leads.
func (f *fence) config(c *rest.Config) *rest.Config {
	out := rest.CopyConfig(c)
	out.Wrap(func(base http.RoundTripper) http.RoundTripper { return fenced{base, f} })
	return out
}

// watch calls stop when the lease has run out, and ends with ctx.
func (f *fence) watch(ctx context.Context, stop func(error)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !f.expired() {
		select {
		case <-tick.C:
		case <-f.lost:
		case <-ctx.Done():
			return
		}
	}
	stop(errLeaseLost)
}

// expired compares by the wall clock, too: the monotonic one stands still while a machine is suspended.
func (f *fence) expired() bool {
	renewed, now := f.renewed.Load(), time.Now()
	return renewed != nil && max(now.Sub(*renewed), now.Round(0).Sub(renewed.Round(0))) > leaseDuration-leaseMargin
}

// fenced sends the requests of a manager, and sees the renewals of its lease among them.
type fenced struct {
	base http.RoundTripper
	*fence
}

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, f.lease) {
		sent := time.Now()
		response, err := f.base.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && r.Method == http.MethodPut {
			f.renewed.Store(&sent)
		}
		return response, err
	}
	if r.Method == http.MethodGet || !f.expired() {
		return f.base.RoundTrip(r)
	}
	select {
	case f.lost <- struct{}{}:
	default:
	}
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, errLeaseLost
}
