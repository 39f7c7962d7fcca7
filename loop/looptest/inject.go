package looptest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/testenv"
)

// Fault is what happens to requests instead of an answer. The zero value cuts the connection at every write.
type Fault struct {
	// On says which requests: a verb as in [testenv.Request], and after a space a resource, which may have a subresource,
	// such as "apply probes/status", "create configmaps" or "* configmaps". Empty means every write.
	On string
	// Nth is which of these requests, from 1. Zero means all of them.
	Nth int
	// Code is the HTTP status of the answer, for example 409, 429 or 500. Zero means that the connection is cut.
	Code int
	// RetryAfter is what a 429 or 503 tells the client to wait, in whole seconds. The client does that, and sends the request again.
	RetryAfter time.Duration
	// After means that the API server carries out the request, and its answer is lost. False means that it never gets
	// the request.
	After bool
	// Kill means that the process is killed: no answer reaches it, and none of its later requests is sent.
	Kill bool
}

// ErrKilled is the error of each request of a process that a [Fault] killed, and ErrCut that of a request whose
// connection was cut.
var (
	ErrKilled = errors.New("looptest: the process was killed")
	ErrCut    = errors.New("looptest: the connection was cut")
)

// Injector injects faults into the requests of one process. All its clients share it. Make one with [Inject].
type Injector struct {
	mu     sync.Mutex
	faults []Fault
	met    []int
	killed chan struct{}
	once   sync.Once // closes killed
	// last is the write at which the process was killed.
	last string
}

// Inject returns an injector of faults. The first one that fits a request counts. For a manager, pass Wrap to the
// Wrap of its rest.Config; for an [Env], pass it in [Cluster.Wrap].
func Inject(faults ...Fault) *Injector {
	return &Injector{faults: faults, met: make([]int, len(faults)), killed: make(chan struct{})}
}

// Killed is closed when a fault has killed the process. Whoever runs it stops it then, and starts another.
func (i *Injector) Killed() <-chan struct{} { return i.killed }

// Wrap is a transport.WrapperFunc.
func (i *Injector) Wrap(next http.RoundTripper) http.RoundTripper {
	return transport{next, func(req *http.Request) (*http.Response, error) {
		fault, found := i.find(testenv.ParseRequest(req))
		if !found {
			return next.RoundTrip(req)
		}
		if fault.After {
			if resp, err := next.RoundTrip(req); err == nil {
				_ = resp.Body.Close() // nobody hears the answer
			}
			if fault.Kill {
				i.kill()
			}
		}
		switch {
		case fault.Kill:
			return nil, ErrKilled
		case fault.Code == 0:
			return nil, ErrCut
		}
		return fault.answer(req), nil
	}}
}

// find returns the fault that a request meets.
func (i *Injector) find(r testenv.Request) (Fault, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.killed:
		return Fault{Kill: true}, true
	default:
	}
	for n, f := range i.faults {
		if !f.fits(r) {
			continue
		}
		if i.met[n]++; f.Nth == 0 || f.Nth == i.met[n] {
			if f.Kill {
				i.last = strings.TrimSuffix(r.String(), " 0")
			}
			if f.Kill && !f.After {
				i.kill()
			}
			return f, true
		}
	}
	return Fault{}, false
}

// kill kills the process, unless another request that met the same fault has done so.
func (i *Injector) kill() { i.once.Do(func() { close(i.killed) }) }

func (f Fault) fits(r testenv.Request) bool {
	verb, what, _ := strings.Cut(f.On, " ")
	resource, subresource, _ := strings.Cut(what, "/")
	switch {
	case verb == "":
		return r.IsWrite()
	case verb != "*" && verb != r.Verb:
		return false
	}
	return what == "" || resource == r.Resource && subresource == r.Subresource
}

func (f Fault) answer(req *http.Request) *http.Response {
	reasons := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
		http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	header := http.Header{"Content-Type": []string{"application/json"}}
	if f.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"injected fault"}`, reasons[f.Code], f.Code)
	return &http.Response{StatusCode: f.Code, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}
