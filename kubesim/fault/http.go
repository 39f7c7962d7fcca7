package fault

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/disturb"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// HTTP returns a transport to an external API for the operator's HTTP client. Its handler gets paths as the client
// escaped them, as from a real server. (A wildcard of [http.ServeMux] matches a%2Fb, but no segment that is %2F alone, on no
// server; split r.URL.EscapedPath() if there are such, as in RabbitMQ's API.) GET, HEAD and OPTIONS are
// reads; all other methods are writes. In requests to AWS that name their operation, all of which are POST, those
// that get, list or describe something are reads. AWS also has an answer of its own to too many requests.
func HTTP[O ExternalAPI](env *Env, serve func(O) http.Handler) http.RoundTripper {
	return transport[O]{env, serve}
}

// transport is HTTP.
type transport[O ExternalAPI] struct {
	env   *Env
	serve func(O) http.Handler
}

// RoundTrip sends a request.
func (t transport[O]) RoundTrip(r *http.Request) (*http.Response, error) {
	what, write, r, err := describe(r)
	asked := []string{r.URL.Host, r.URL.RawQuery}
	if err == nil && write {
		r, err = outliving(r)
		asked = append(asked, string(apiserver.Body(r)))
	}
	if err != nil {
		return nil, err
	}
	response, err := call(run.WithDetail(r.Context(), asked...), t.env, what, write, func(o O) (*http.Response, error) {
		return apiserver.Serve(t.serve(o), received(r))
	})
	switch {
	case errors.Is(err, ErrThrottled) && isAWS(r):
		return throttledByAWS(r, err.Error()), nil
	case errors.Is(err, ErrThrottled):
		return disturb.Throttle(r, metav1.Status{Message: err.Error()}), nil
	case errors.Is(err, ErrUnavailable):
		return apiserver.Answer(r, metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}), nil
	}
	return response, err
}

// received is a request as a server receives it: with the path as the client escaped it, also if the client gave it in
// Opaque, as some do for segments such as %2F.
func received(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Host = cmp.Or(r.Host, r.URL.Host)
	if r.URL.Opaque != "" {
		if u, err := url.ParseRequestURI(r.URL.RequestURI()); err == nil {
			u.Scheme, u.Host = r.URL.Scheme, r.URL.Host
			r.URL = u
		}
	}
	r.RequestURI = r.URL.RequestURI()
	return r
}

// outliving is a request that can be sent when its caller has gone.
func outliving(r *http.Request) (*http.Request, error) {
	again := r.Clone(context.WithoutCancel(r.Context()))
	if r.Body == nil || r.Body == http.NoBody {
		return again, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close() // all of it was read
	again.Body = io.NopCloser(bytes.NewReader(text))
	return again, nil
}

// describe says what a request is about and whether it may change something. The request that it returns is the one
// to send: a body that was read is there again.
func describe(r *http.Request) (what string, write bool, again *http.Request, err error) {
	operation := r.Header.Get("X-Amz-Target") // AWS's JSON protocols
	if operation == "" && isAWS(r) && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") && r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return "", false, nil, err
		}
		_ = r.Body.Close() // all of it was read
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(text))
		if form, err := url.ParseQuery(string(text)); err == nil {
			operation = form.Get("Action") // AWS's query protocols
		}
	}
	if operation != "" {
		return operation, !isReading(operation[strings.LastIndexByte(operation, '.')+1:]), r, nil
	}
	reads := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	u := received(r).URL
	return r.Method + " " + cmp.Or(u.RawPath, u.Path), !slices.Contains(reads, r.Method), r, nil
}

// isReading reports whether an operation of AWS changes nothing, by its name.
func isReading(operation string) bool {
	return slices.ContainsFunc([]string{"Get", "List", "Describe", "BatchGet", "Head", "Query", "Scan"}, func(verb string) bool {
		return strings.HasPrefix(operation, verb)
	})
}

// isAWS reports whether a request is signed as AWS wants it.
func isAWS(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-")
}

// throttledByAWS is AWS's answer to too many requests: its SDKs retry because of the code in it, not because of the
// HTTP status. Each protocol of AWS has another place for the code.
func throttledByAWS(r *http.Request, message string) *http.Response {
	const code = "Throttling"
	response := apiserver.Answer(r, metav1.Status{Code: http.StatusBadRequest, Message: message})
	response.Header.Set("X-Amzn-Errortype", code)
	if strings.Contains(r.Header.Get("Content-Type"), "json") {
		return withBody(response, `{"__type":"`+code+`","message":"`+message+`"}`)
	}
	response.Header.Set("Content-Type", "text/xml")
	text := "<Code>" + code + "</Code><Message>" + message + "</Message>"
	return withBody(response, "<ErrorResponse>"+text+"<Error>"+text+"</Error><Errors><Error>"+text+"</Error></Errors></ErrorResponse>")
}

func withBody(r *http.Response, text string) *http.Response {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return r
}
