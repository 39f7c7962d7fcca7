package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// webhooks is a process's webhook server. It is called in the process, so that it needs neither certificates
// nor a port.
type webhooks struct {
	process *Process

	mu  sync.Mutex
	mux *http.ServeMux
}

var _ webhook.Server = &webhooks{}

// NeedLeaderElection reports that replicas without the lease have webhooks, too.
func (*webhooks) NeedLeaderElection() bool { return false }

// Register notes a webhook.
func (w *webhooks) Register(path string, hook http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mux.Handle(path, hook)
	w.process.record.Process(w.process.number, func(h *history.Process) { h.Webhooks = append(h.Webhooks, path) })
	w.process.doors.register(path, w.process.calls.box)
}

// Start serves until the process ends.
func (w *webhooks) Start(ctx context.Context) error {
	w.process.doors.open(w)
	defer w.process.doors.close(w)
	<-ctx.Done()
	return nil
}

// StartedChecker is satisfied at once.
func (*webhooks) StartedChecker() healthz.Checker { return healthz.Ping }

// WebhookMux has what is registered.
func (w *webhooks) WebhookMux() *http.ServeMux { return w.mux }

// has reports whether something is registered at the path of a request.
func (w *webhooks) has(r *http.Request) bool {
	_, pattern := w.mux.Handler(r)
	return pattern != ""
}

// doors are the webhooks of all processes of a run, as the API server reaches them.
type doors struct {
	record *history.Recorder
	// implies is set if the operator's manifests hold no configuration, so that paths have to say what they are for.
	implies bool
	server  *apiserver.Webhooks
	// attended is set while what others do waits for a webhook.
	attended atomic.Bool

	mu      sync.Mutex
	serving []*webhooks // the oldest first
	traffic
}

// traffic is what came through the doors.
type traffic struct {
	registered []string // paths, ever
	under      int      // calls under way
	refusals   int      // calls that were denied, or reached nobody
	outages    int      // of these, those that reached nobody
}

// now is what came so far.
func (d *doors) now() traffic {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.traffic
	t.registered = slices.Clip(t.registered)
	return t
}

// note changes what came.
func (d *doors) note(change func(*traffic)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.traffic)
}

func newDoors(record *history.Recorder, implies bool) *doors {
	d := &doors{record: record, implies: implies}
	d.server = apiserver.NewWebhooks(d)
	return d
}

// register notes a path, and for what it is called if that is for the path to say.
func (d *doors) register(path string, box *sandbox.Sandbox) {
	d.note(func(t *traffic) { t.registered = append(t.registered, path) })
	if !d.implies {
		return
	}
	if of, isMutating, ok := impliedBy(path, box); ok {
		d.server.Imply(path, isMutating, of)
		d.record.Webhook(path, func(h *history.Webhook) { h.Implied = of.GroupResource().String() })
	}
}

// impliedBy reads what controller-runtime's builder puts into a path: /mutate-apps-example-com-v1-shop.
func impliedBy(path string, box *sandbox.Sandbox) (of schema.GroupVersionResource, isMutating, ok bool) {
	rest, isMutating := strings.CutPrefix(path, "/mutate-")
	if !isMutating {
		if rest, ok = strings.CutPrefix(path, "/validate-"); !ok {
			return of, false, false
		}
	}
	for gvk := range box.Scheme.AllKnownTypes() {
		if strings.ReplaceAll(gvk.Group, ".", "-")+"-"+gvk.Version+"-"+strings.ToLower(gvk.Kind) != rest {
			continue
		}
		if mapping, err := box.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			return mapping.Resource, isMutating, true
		} else if !meta.IsNoMatchError(err) {
			return of, false, false
		}
	}
	return of, false, false
}

func (d *doors) open(w *webhooks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serving = append(d.serving, w)
}

func (d *doors) close(w *webhooks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serving = slices.DeleteFunc(d.serving, func(o *webhooks) bool { return o == w })
}

// begin returns who is to answer a call; nil if nobody serves.
func (d *doors) begin() *webhooks {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.serving {
		if w.process.Alive() {
			d.under++
			return w
		}
	}
	d.refusals++
	d.outages++
	return nil
}

// RoundTrip calls a webhook of the operator. While no process serves, connections are refused.
func (d *doors) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	if strings.HasPrefix(r.URL.Host, Optional+".") && !slices.Contains(d.now().registered, path) {
		return leaveAsIs(r)
	}
	w := d.begin()
	if w == nil {
		d.record.Webhook(path, func(h *history.Webhook) { h.Unreached++ })
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	defer d.note(func(t *traffic) { t.under-- })
	if !w.has(r) {
		d.record.Webhook(path, func(h *history.Webhook) { h.Unregistered = true })
		return letThrough(r)
	}
	response, err := w.answer(r)
	denied := err == nil && isDenial(response)
	if denied || err != nil {
		d.note(func(t *traffic) { t.refusals++ })
	}
	d.record.Webhook(path, func(h *history.Webhook) {
		h.Calls++
		if denied {
			h.Denied++
		}
	})
	return response, err
}

// Optional is the name of the service of a converter that an operator need not have.
const Optional = "optional"

type webhookKey struct{}

// inWebhook reports whether a context is that of a webhook's call.
func inWebhook(ctx context.Context) bool { return ctx.Value(webhookKey{}) != nil }

// answer lets the process answer. As over a connection, its context ends with the process and with the caller's
// patience, and has nothing of the caller's.
func (w *webhooks) answer(r *http.Request) (*http.Response, error) {
	p := w.process
	ctx, cancel := p.newContext()
	defer cancel()
	type answer struct {
		response *http.Response
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: io.EOF} // unless it comes to an end
		defer func() {
			_ = recover() // as net/http does, which then closes the connection
			answers <- a
		}()
		a.response, a.err = apiserver.Serve(w.mux, r.WithContext(ctx))
	}()
	select {
	case a := <-answers:
		return a.response, a.err
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case <-p.ended:
		w.process.doors.note(func(t *traffic) { t.outages++ }) // the process died while it was called
		return nil, io.EOF
	}
}

// review is what all versions of an AdmissionReview have in common.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    *struct {
		UID string `json:"uid"`
	} `json:"request,omitempty"`
	Response *reviewResponse `json:"response,omitempty"`
}

type reviewResponse struct {
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
}

// isDenial reports whether a webhook that admits or not does not. The answer can still be read.
func isDenial(response *http.Response) bool {
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was in memory
	response.Body = io.NopCloser(bytes.NewReader(text))
	var of review
	return err == nil && json.Unmarshal(text, &of) == nil && of.Kind == "AdmissionReview" && of.Response != nil && !of.Response.Allowed
}

// leaveAsIs converts what a CRD without a converter serves in several versions.
func leaveAsIs(r *http.Request) (*http.Response, error) {
	var of apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&of); err != nil || of.Request == nil {
		return nil, fmt.Errorf("what was sent to %s cannot be converted: %w", r.URL.Path, err)
	}
	of.Response = &apiextensionsv1.ConversionResponse{UID: of.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, o := range of.Request.Objects {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(o.Raw); err != nil {
			return nil, err
		}
		u.SetAPIVersion(of.Request.DesiredAPIVersion)
		of.Response.ConvertedObjects = append(of.Response.ConvertedObjects, runtime.RawExtension{Object: u})
	}
	of.Request = nil
	return answered(r, of)
}

// letThrough answers for a webhook that another program would serve.
func letThrough(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var of review
	if err := json.Unmarshal(text, &of); err != nil || of.Kind != "AdmissionReview" || of.Request == nil {
		return nil, fmt.Errorf("the operator registered no webhook at %s", r.URL.Path)
	}
	of.Response, of.Request = &reviewResponse{UID: of.Request.UID, Allowed: true}, nil
	return answered(r, of)
}

func answered(r *http.Request, with any) (*http.Response, error) {
	return apiserver.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(with) // into memory
	}), r)
}
