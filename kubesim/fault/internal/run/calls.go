package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/turn"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// calls carries all calls of an operator's processes, and disturbs them.
type calls struct {
	manager manager.Options
	secrets []string
	account user.Info // nil: administrator
	audit   *apiserver.Audit

	schedule schedule.Schedule
	box      *sandbox.Sandbox
	others   *disturb.Others
	record   *history.Recorder
	learned  *Learned
	flights  *flights
	past     *past
	slowness *slowness
	froze    atomic.Bool // a process stood still; one in a run does

	waitsUntil time.Time // the end of the present step's Wait
}

// transport carries the requests of one process. All of them come through here:
// those of clients, caches, recorders and leases.
func (c *calls) transport(p *Process) http.RoundTripper {
	return endless{oldLists{c.past, p, &apiserver.Transport{
		Server: c.box.Server,
		Client: apiserver.Client{DB: c.box.DB, User: c.account, Gate: &p.gate, Audit: c.audit},
		Around: func(info *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			if c.isElection(info) || isSeries(info) || inWebhook(r.Context()) {
				return c.unnumbered(p, info, send)
			}
			return c.kubernetes(p, info, r, send)
		},
	}}}
}

// endless keeps watches open: informers ask for an end after a random time, which would make
// equal runs differ.
type endless struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Has("watch") && q.Has("timeoutSeconds") {
		r = r.Clone(r.Context())
		q.Set("timeoutSeconds", "31536000")
		r.URL.RawQuery = q.Encode()
	}
	return e.next.RoundTrip(r)
}

// kubernetes carries one request to Kubernetes.
func (c *calls) kubernetes(p *Process, info *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	call := describe(info, r)
	call.Body = bodyOf(&call, r, c.secrets)
	if len(c.schedule) == 0 {
		call.Sent = sentIn(&call, r)
	}
	call.Pass = p.passes.passOf(r.Context())
	if err := p.events.awaitReopening(r.Context(), call.Pass, info); err != nil {
		return nil, err
	}
	if err := p.awaitCall(r.Context(), call.Pass, call.What, detailOf(r)); err != nil {
		return nil, err
	}
	if call.Verb == "create" && call.Name == "" {
		call.Name = apiserver.Name(apiserver.Body(r)).Name
		call.What = call.Target()
	}
	if err := c.holdUp(r.Context(), p, &call); err != nil {
		return nil, err
	}
	var response *http.Response
	var err error
	kind := c.perform(p, &call, asked{
		send: func() {
			response, err = send()
			if response != nil {
				call.Code = response.StatusCode
			}
		},
		keep: func() func(*history.Call) { return c.keepRequest(r) },
	})
	if kind != "" && response != nil {
		_ = response.Body.Close() // nobody reads an answer that is lost
	}
	answer, failure := disturb.Answer(kind, r)
	switch {
	case failure != nil:
		err, response = failure, nil
	case answer != nil:
		err, response = nil, answer
	}
	if late := c.delayAnswer(r.Context(), p, &call); late != nil {
		if response != nil {
			_ = response.Body.Close() // nobody waits for it any more
		}
		err, response = late, nil
	}
	return response, c.finish(&call, err, response)
}

// keepRequest keeps a request to be sent when its caller has gone.
func (c *calls) keepRequest(r *http.Request) func(arrival *history.Call) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		c.others.Broken = fmt.Errorf("read the body of a request: %w", err)
	}
	again := r.Clone(context.WithoutCancel(r.Context()))
	server := &apiserver.Transport{Server: c.box.Server, Client: apiserver.Client{DB: c.box.DB, User: c.account, Audit: c.audit}}
	return func(arrival *history.Call) {
		again.Body = io.NopCloser(bytes.NewReader(text))
		response, err := server.RoundTrip(again)
		if err == nil {
			arrival.Code = response.StatusCode
			err = response.Body.Close()
		}
		_ = c.finish(arrival, err, response) // nobody waits for it
	}
}

// isElection reports whether a call is one of leader election: those on the manager's own lease.
func (c *calls) isElection(info *request.RequestInfo) bool {
	o := c.manager
	return o.LeaderElection && info.APIGroup == "coordination.k8s.io" && info.Resource == "leases" &&
		(info.Name == o.LeaderElectionID || info.Verb == "create" && info.Namespace == cmp.Or(o.LeaderElectionNamespace, metav1.NamespaceDefault))
}

// isSeries reports whether a call is one in which client-go's recorder of events renews its series or ends them. It does
// that for one series after the other in the order of a map, with a lock held that whoever records an event waits for.
func isSeries(info *request.RequestInfo) bool {
	if info.Resource != "events" || !history.Housekeeping(info.APIGroup, info.Resource) {
		return false
	}
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if of, ok := strings.CutPrefix(f.Function, "k8s.io/client-go/tools/events.(*eventBroadcasterImpl)."); ok {
			return of == "finishSeries" || of == "refreshExistingEventSeries"
		}
	}
	return false
}

// unnumbered lets a call through at once and without a number: one of leader election, whose times are random in
// client-go, or one about series of events, whose order is, so that equal runs would not be equal; or one that a webhook
// makes while another call waits for it. Dead processes have none.
func (c *calls) unnumbered(p *Process, info *request.RequestInfo, send func() (*http.Response, error)) (*http.Response, error) {
	p.awaitThaw()
	if err := p.GoOn(info.Verb + " " + info.Resource); err != nil {
		return nil, err
	}
	before := c.box.DB.Revision()
	response, err := send()
	c.record.Mark(before, c.box.DB.Revision(), history.Operator, history.Nobody)
	return response, err
}

// describe describes a request.
func describe(info *request.RequestInfo, r *http.Request) history.Call {
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
	c.What = c.Target()
	return c
}

// detailOf tells apart requests that are described alike: creates have no name, and lists have selectors.
func detailOf(r *http.Request) string {
	body := apiserver.Body(r)
	return turn.Detail(apiserver.Name(body).String(), r.URL.RawQuery, string(body))
}

type detailKey struct{}

// WithDetail returns a context for a call to the external API that tells it apart from others of the same name.
func WithDetail(ctx context.Context, asked ...string) context.Context {
	return context.WithValue(ctx, detailKey{}, turn.Detail("", asked...))
}

func detailIn(ctx context.Context) string {
	detail, _ := ctx.Value(detailKey{}).(string)
	return detail
}

// processKey leads to the process that a context belongs to.
type processKey struct{}

// perform lets one call through with the disturbance planned for it, which it returns. Nothing
// else happens in the sandbox meanwhile.
func (c *calls) perform(p *Process, call *history.Call, a asked) string {
	c.land(len(c.record.Run.Calls))
	call.Process, call.ForOthers = p.number, p.doors.attended.Load()
	c.record.BeginCall(call)
	c.others.Before(call)
	d, ok := c.schedule.Find(call.Index, disturb.Answers()...)
	if ok {
		call.Fault = d.Kind
		c.record.Disturbed(d.Kind, call.Index, call.What)
	}
	c.keep(call, false)
	c.effective(call, d, a)
	c.excuse(p, call)
	c.keep(call, true)
	c.others.After(call)
	if disturb.Kills(call.Fault) {
		c.rememberPast(d)
		c.learned.Crashed = c.learned.count(history.Position{Call: call.Index})
		p.crash()
	}
	return call.Fault
}

// effect runs what a call does and notes what it changed.
func (c *calls) effect(call *history.Call, effect func()) {
	before := c.box.DB.Revision()
	if call.Side == history.External && c.box.Observe(history.Nobody) { // by its own clock
		c.box.LastChange = time.Now()
	}
	effect()
	if after := c.box.DB.Revision(); after > before {
		call.Rev, call.Last, call.Changed = before+1, after, true
		c.nameCreated(call)
		c.record.Mark(before, after, history.Operator, call.Index)
	}
	if call.Side == history.External && c.box.Observe(call.Index) {
		call.Changed = true
	}
	if call.Changed && !history.Housekeeping(call.Group, call.Resource) {
		c.box.LastChange = time.Now()
	}
}

// keep keeps what is durable at a write, if schedules are to begin here.
func (c *calls) keep(call *history.Call, after bool) {
	if call.Write && c.learned.States != nil {
		c.learned.States[Point{call.Index, after}] = c.box.State().Hash()
	}
	if c.learned.Snapshots == nil || !call.Write {
		return
	}
	s, err := c.box.Snapshot(call.Index, c.waitsUntil)
	switch {
	case err != nil:
		c.others.Broken = err
	case s != nil:
		s.Position = c.learned.count(s.Position)
		c.learned.Snapshots[Point{call.Index, after}] = s
	}
}

// nameCreated puts the name of a created object into the record, if the API server has given it.
func (c *calls) nameCreated(call *history.Call) {
	made := c.box.DB.Since(call.Rev - 1)
	if call.Verb != "create" || call.Subresource != "" || len(made) == 0 {
		return
	}
	call.Name = path.Base(made[0].Key)
	call.What = call.Target()
}

// finish completes the record of a call with what the caller got, which it returns.
func (c *calls) finish(call *history.Call, err error, response *http.Response) error {
	switch {
	case err != nil:
		call.Err = err.Error()
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		call.Err = fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	c.record.EndCall(call)
	return err
}

// external carries one call to the external API. lost is set if the caller does not get the answer.
func (c *calls) external(ctx context.Context, p *Process, what string, write bool, do func(*sandbox.External) (code int, err error)) (lost bool, err error) {
	call := history.Call{Side: history.External, Verb: "read", What: what, Write: write, Pass: p.passes.passOf(ctx)}
	if write {
		call.Verb = "write"
	}
	if caller, ok := ctx.Value(processKey{}).(*Process); ok && caller != p {
		return true, caller.calls.borrowed(what)
	}
	if err := p.awaitCall(ctx, call.Pass, "external "+what, detailIn(ctx)); err != nil {
		return true, err
	}
	if err := c.holdUp(ctx, p, &call); err != nil {
		return true, err
	}
	if inWebhook(ctx) {
		_, err = do(c.box.External())
		c.box.Observe(history.Nobody)
		return false, err
	}
	effect := func(call *history.Call) (err error) {
		call.Code, err = do(c.shownTo(call))
		if misuse, ok := errors.AsType[sandbox.MisuseError](err); ok {
			c.others.Broken = misuse // an operator that copes with it would look right
		}
		return err
	}
	kind := c.perform(p, &call, asked{
		send: func() { err = effect(&call) },
		keep: func() func(*history.Call) {
			return func(arrival *history.Call) {
				if err := effect(arrival); err != nil {
					arrival.Err = err.Error()
				}
			}
		},
	})
	failure := disturb.Failure(kind)
	if failure != nil {
		err = c.worded(failure)
	}
	if late := c.delayAnswer(ctx, p, &call); late != nil {
		failure, err = late, late
	}
	return failure != nil, c.finish(&call, err, nil)
}

// borrowed ends a run in which a process makes a call with what belongs to another process, perhaps one of another run.
func (c *calls) borrowed(what string) error {
	misuse := sandbox.MisuseError(fmt.Sprintf("%q was called with the Env of another process: the operator keeps a client in a package variable, "+
		"where it survives a restart; empty that in SetUp, and play one schedule at a time with fault.Workers(1)", what))
	c.others.Broken = misuse
	return misuse
}

// shownTo returns the external API that a call sees: what is there, or for a read that lags,
// what was there before the last change.
func (c *calls) shownTo(call *history.Call) *sandbox.External {
	if call.Write {
		if c.box.Lag > 0 {
			c.box.KeepEarlier()
		}
		return c.box.External()
	}
	if d, ok := c.schedule.Find(call.Index, schedule.Lag); ok && c.box.Earlier() != nil {
		c.record.Disturbed(d.Kind, call.Index, call.What)
		return c.box.Earlier()
	}
	return c.box.External()
}

// worded adds to a failure what many libraries say with it: the address, and how they log in.
func (c *calls) worded(failure error) error {
	if len(c.secrets) == 0 || errors.Is(failure, disturb.ErrDead) || errors.Is(failure, disturb.ErrNoAnswer) {
		return failure
	}
	return fmt.Errorf("%w (https://operator:%s@vendor.example.com/)", failure, c.secrets[0])
}
