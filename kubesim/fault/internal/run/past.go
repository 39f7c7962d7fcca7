package run

import (
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// Reflectors fill their caches in one of two ways. A streaming list shows what is in etcd. A list of resource version "0"
// shows what is in the watch cache of the API server that answers, which may be behind without limit; the watch that
// follows goes on from there. So they list if the client's feature gate WatchListClient is off, as before client-go 0.35, or if
// the API server's gate WatchList is, as by default before Kubernetes 1.34 (and not in 1.32).

// oldPasses is how many passes a process with old caches makes before they catch up.
const oldPasses = 3

// past is the state with which the caches of the next process begin.
type past struct {
	rev  int64 // 0: the present one
	next bool  // the process has not started
	of   *Process
}

// rememberPast notes, as a process is killed, with which state the next one begins.
func (c *calls) rememberPast(d schedule.Disturbance) {
	if d.Kind != schedule.OldCache {
		return
	}
	changes, err := strconv.Atoi(d.Arg)
	if err != nil || changes < 1 {
		changes = 1
	}
	var since int64
	if steps := c.record.Run.Steps; len(steps) > 1 {
		since = steps[1].Rev
	}
	c.past.rev = c.box.Before(changes, since, c.record.Run.Watched())
	c.past.next = c.past.rev > 0
	c.others.Void = c.others.Void || !c.past.next
}

// begin lets a process begin with that state if it is the next one.
func (o *past) begin(p *Process) {
	if !o.next {
		return
	}
	o.next, o.of = false, p
	p.events.delayAll(&p.gate)
}

// oldLists answers the lists of one process with an older state, as an API server does that is behind and has no streaming
// lists, until it has caught up.
type oldLists struct {
	past    *past
	process *Process
	next    http.RoundTripper
}

// RoundTrip sends a request.
func (o oldLists) RoundTrip(r *http.Request) (*http.Response, error) {
	if o.past.of != o.process || !o.process.events.areDelayed(&o.process.gate) {
		return o.next.RoundTrip(r)
	}
	q := r.URL.Query()
	switch {
	case q.Get("sendInitialEvents") == "true":
		return apiserver.Answer(r, metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
		}), nil
	case r.Method == http.MethodGet && !q.Has("watch") && q.Get("resourceVersion") == "0":
		r = r.Clone(r.Context())
		q.Set("resourceVersion", strconv.FormatInt(o.past.rev, 10))
		q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		q.Del("limit")
		r.URL.RawQuery = q.Encode()
	}
	return o.next.RoundTrip(r)
}
