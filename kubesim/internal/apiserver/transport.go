package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Transport carries a client's requests to a server in the same process.
type Transport struct {
	Server *Server
	Client Client
	// Around, if set, is called for each request and decides whether and how often to send it.
	Around func(info *request.RequestInfo, r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
}

// RoundTrip answers one request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	prepared, info, err := t.Server.prepare(t.Client, r)
	if err != nil {
		return nil, err
	}
	send := func() (*http.Response, error) {
		prepared.Body = r.Body // Around may have read it and put it back
		if info.Verb == "watch" {
			return t.stream(prepared, r), nil
		}
		w := &recorder{header: http.Header{}, code: http.StatusOK}
		t.Server.serve(t.Client, w, prepared)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return w.response(r), nil
	}
	if t.Around == nil {
		return send()
	}
	return t.Around(info, r, send)
}

// CancelRequest does nothing: a request ends with its context. Without it, clients log that
// they cannot cancel.
func (t *Transport) CancelRequest(*http.Request) {}

// inner carries the registries' own requests.
type inner struct {
	server *Server
	// db is their cluster. Nil means that of the request that they serve; without one they see
	// an empty cluster: the built-in kinds.
	db *store.DB
}

func (i inner) config() *restclient.Config {
	return &restclient.Config{Host: "http://kubesim", QPS: -1, UserAgent: "kube-apiserver", Transport: i}
}

// RoundTrip answers one request.
func (i inner) RoundTrip(r *http.Request) (*http.Response, error) {
	db := i.db
	if db == nil {
		db, _ = store.Of(r.Context())
	}
	if db == nil {
		db = store.New()
	}
	return (&Transport{Server: i.server, Client: Client{DB: db}}).RoundTrip(r)
}

// stream starts a watch. Its body is a pipe, which a bubble knows to be idle.
func (t *Transport) stream(prepared, original *http.Request) *http.Response {
	ctx, cancel := context.WithCancel(prepared.Context())
	reader, writer := io.Pipe()
	w := &streamer{header: http.Header{}, pipe: writer, started: make(chan struct{})}
	go func() {
		defer cancel()
		t.Server.serve(t.Client, w, prepared.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		_ = writer.Close() // never fails
	}()
	context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	<-w.started
	return response(w.code, w.header, body{reader, cancel}, -1, original)
}

// recorder takes an answer that comes in one piece.
type recorder struct {
	header http.Header
	code   int
	buffer bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(code int)        { w.code = code }
func (w *recorder) Write(p []byte) (int, error) { return w.buffer.Write(p) }
func (w *recorder) Flush()                      {}
func (w *recorder) CloseNotify() <-chan bool    { return nil }

func (w *recorder) response(r *http.Request) *http.Response {
	return response(w.code, w.header, io.NopCloser(&w.buffer), int64(w.buffer.Len()), r)
}

// streamer takes an answer that never ends. The API server wants both a Flusher and a
// CloseNotifier for one.
type streamer struct {
	header  http.Header
	code    int
	pipe    *io.PipeWriter
	once    sync.Once
	started chan struct{}
}

func (w *streamer) Header() http.Header { return w.header }

func (w *streamer) WriteHeader(code int) {
	w.once.Do(func() {
		w.code = code
		close(w.started)
	})
}

func (w *streamer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

func (w *streamer) Flush()                   { w.WriteHeader(http.StatusOK) }
func (w *streamer) CloseNotify() <-chan bool { return nil }

// body is a watch's stream; closing it ends the watch.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Read ends with io.EOF after the watch was closed. Any other error would become an event, which the
// filter of client-go's metadata watches keeps for ever, with its goroutine, if nobody takes it
// (kubernetes#113254).
func (b body) Read(p []byte) (int, error) {
	n, err := b.PipeReader.Read(p)
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

func (b body) Close() error {
	b.cancel()
	return b.PipeReader.CloseWithError(errClosed)
}

var errClosed = errors.New("kubesim: read of a closed watch")

func response(code int, h http.Header, b io.ReadCloser, length int64, r *http.Request) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: b, ContentLength: length, Request: r,
	}
}
