package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// operatorTransport carries the requests of one process. All of them come through here:
// those of clients, caches, recorders and leases.
func (p *play) operatorTransport(pr *process) http.RoundTripper {
	return endless{&apiserver.Transport{
		Server: p.server,
		Client: apiserver.Client{DB: p.db, User: p.account, Gate: &pr.gate, Audit: p.audit},
		Around: pr.around,
	}}
}

// endless keeps watches open: informers ask for an end after a random time, which would make
// equal runs differ.
type endless struct{ next http.RoundTripper }

func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Has("watch") && q.Has("timeoutSeconds") {
		r = r.Clone(r.Context())
		q.Set("timeoutSeconds", "31536000")
		r.URL.RawQuery = q.Encode()
	}
	return e.next.RoundTrip(r)
}

func (pr *process) around(info *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	p := pr.play
	if p.isElection(info) {
		return pr.lease(info, send)
	}
	c := kubernetesCall(info, r)
	c.Pass = passOf(r.Context())
	if err := p.park(r.Context(), pr, parkedCall, c.What); err != nil {
		return nil, err
	}
	var response *http.Response
	var err error
	fault := p.perform(pr, &c, func() {
		response, err = send()
		if response != nil {
			c.Code = response.StatusCode
		}
	})
	if fault != "" && response != nil {
		_ = response.Body.Close() // nobody reads an answer that is lost
	}
	answer, failure := disturbedAnswer(fault, r)
	switch {
	case failure != nil:
		err, response = failure, nil
	case answer != nil:
		err, response = nil, answer
	}
	return response, p.finish(&c, err, response)
}

// isElection tells the calls of leader election: those on the manager's own lease.
func (p *play) isElection(info *request.RequestInfo) bool {
	o := p.scenario.Operator.Manager
	return o.LeaderElection && info.APIGroup == "coordination.k8s.io" && info.Resource == "leases" &&
		(info.Name == o.LeaderElectionID || info.Verb == "create" && info.Namespace == cmp.Or(o.LeaderElectionNamespace, metav1.NamespaceDefault))
}

// lease lets a call of leader election through, at once and without a number: its times are
// random in client-go, so equal runs would not be equal. Dead processes have none.
func (pr *process) lease(info *request.RequestInfo, send func() (*http.Response, error)) (*http.Response, error) {
	if !pr.alive() {
		return nil, pr.refuse(info.Verb + " leases")
	}
	p := pr.play
	before := p.db.Revision()
	response, err := send()
	p.mark(before, p.db.Revision(), operatorName, history.Nobody)
	return response, err
}

// kubernetesCall describes a request.
func kubernetesCall(info *request.RequestInfo, r *http.Request) history.Call {
	c := history.Call{
		Side: history.Kubernetes, Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	}
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		c.Write = true
	}
	if info.Verb == "delete" {
		c.PreconditionUID, c.PreconditionRV = apiserver.Preconditions(r)
	}
	if !info.IsResourceRequest {
		c.Resource = info.Path
	}
	target := c.Resource
	if c.Subresource != "" {
		target += "/" + c.Subresource
	}
	if c.Name != "" {
		target += " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
	}
	c.What = c.Verb + " " + target
	return c
}

// passOf returns the reconcile that a context belongs to.
func passOf(ctx context.Context) int {
	if i, ok := ctx.Value(passKey{}).(int); ok {
		return i
	}
	return history.Nobody
}

// disturbedAnswer is what a caller gets in place of the real answer; neither for "" and for
// faults that leave the answer as it is.
func disturbedAnswer(fault string, r *http.Request) (*http.Response, error) {
	switch fault {
	case crashBefore, crashAfter:
		return nil, ErrDead
	case lostAnswer, noAnswer:
		return nil, ErrNoAnswer
	case refused:
		return nil, fmt.Errorf("fault: dial tcp: %w", syscall.ECONNREFUSED)
	case throttled:
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "fault: too many requests"}
		a := apiserver.Answer(r, status)
		a.Header.Set("Retry-After", "1")
		return a, nil
	case failed:
		return apiserver.Answer(r, metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "fault: internal error"}), nil
	}
	return nil, nil
}

// perform lets one call through with the disturbance planned for it, which it returns. Nothing
// else happens in the world meanwhile.
func (p *play) perform(pr *process, c *history.Call, effect func()) string {
	c.Index, c.At, c.Process = len(p.run.Calls), time.Now(), pr.number
	p.run.Calls = append(p.run.Calls, *c)
	p.actBefore(c)
	fault := ""
	if d, ok := p.schedule.find(c.Index, crashBefore, crashAfter, lostAnswer, noAnswer, throttled, failed, refused, failedAfter); ok {
		fault = d.kind
		p.noteFault(d, c.Index, c.What)
	}
	c.Fault = fault
	if c.Write {
		p.snapshot(c, false)
	}
	switch fault {
	case crashBefore, noAnswer, throttled, failed, refused:
	default:
		p.effect(c, effect)
	}
	if c.Write {
		p.snapshot(c, true)
	}
	p.actAfter(c)
	if fault == crashBefore || fault == crashAfter {
		p.crash(pr)
	}
	return fault
}

// effect runs what a call does and notes what it changed.
func (p *play) effect(c *history.Call, effect func()) {
	before := p.db.Revision()
	if c.Side == history.External && p.observe(history.Nobody) { // by its own clock
		p.lastChange = time.Now()
	}
	effect()
	if after := p.db.Revision(); after > before {
		c.Rev, c.Last, c.Changed = before+1, after, true
		p.nameCreated(c)
		p.mark(before, after, operatorName, c.Index)
	}
	if c.Side == history.External && p.observe(c.Index) {
		c.Changed = true
	}
	if c.Changed && !history.Housekeeping(c.Group, c.Resource) {
		p.lastChange = time.Now()
	}
}

// nameCreated puts the name of a created object into the record; requests have none.
func (p *play) nameCreated(c *history.Call) {
	made := p.db.Since(c.Rev - 1)
	if c.Verb != "create" || c.Name != "" || len(made) == 0 {
		return
	}
	c.Name = path.Base(made[0].Key)
	c.What += " " + strings.TrimPrefix(c.Namespace+"/"+c.Name, "/")
}

// finish completes the record of a call with what the caller got, which it returns.
func (p *play) finish(c *history.Call, err error, response *http.Response) error {
	switch {
	case err != nil:
		c.Err = err.Error()
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		c.Err = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run.Calls[c.Index] = *c
	return err
}

// call is Read and Write.
func call[O ExternalAPI, R any](ctx context.Context, env *Env, what string, write bool, do func(O) (R, error)) (R, error) {
	var zero, result R
	pr := env.process
	p := pr.play
	c := history.Call{Side: history.External, Verb: "read", What: what, Write: write, Pass: passOf(ctx)}
	if write {
		c.Verb = "write"
	}
	if err := p.park(ctx, pr, parkedCall, "outside "+what); err != nil {
		return zero, err
	}
	var err error
	fault := p.perform(pr, &c, func() {
		var o O
		if o, err = externalAs[O](p.externalFor(&c), what); err != nil {
			p.broken = err // an operator that copes with it would look right
			return
		}
		result, err = do(o)
		if response, ok := any(result).(*http.Response); ok && response != nil {
			c.Code = response.StatusCode
		}
	})
	if failure := externalFailure(fault); failure != nil {
		result, err = zero, p.worded(failure)
	}
	return result, p.finish(&c, err, nil)
}

// worded adds to a failure what many libraries tell with it: the address, and how they log in.
func (p *play) worded(failure error) error {
	if len(p.scenario.Secrets) == 0 || errors.Is(failure, ErrDead) || errors.Is(failure, ErrNoAnswer) {
		return failure
	}
	return fmt.Errorf("%w (https://operator:%s@vendor.example.com/)", failure, p.scenario.Secrets[0])
}

func externalFailure(fault string) error {
	switch fault {
	case crashBefore, crashAfter:
		return ErrDead
	case lostAnswer, noAnswer:
		return ErrNoAnswer
	case throttled:
		return ErrThrottled
	case failed, failedAfter:
		return ErrUnavailable
	case refused:
		return fmt.Errorf("fault: dial tcp: %w", syscall.ECONNREFUSED)
	}
	return nil
}

// transport is HTTP.
type transport[O ExternalAPI] struct {
	env   *Env
	serve func(O) http.Handler
}

func (t transport[O]) RoundTrip(r *http.Request) (*http.Response, error) {
	write := true
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		write = false
	}
	response, err := call(r.Context(), t.env, r.Method+" "+r.URL.Path, write, func(o O) (*http.Response, error) {
		return apiserver.Serve(t.serve(o), r)
	})
	switch {
	case errors.Is(err, ErrThrottled):
		a := apiserver.Answer(r, metav1.Status{Code: http.StatusTooManyRequests, Message: err.Error()})
		a.Header.Set("Retry-After", "1")
		return a, nil
	case errors.Is(err, ErrUnavailable):
		return apiserver.Answer(r, metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}), nil
	}
	return response, err
}
