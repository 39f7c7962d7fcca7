package looptest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watching is a watch that the server serves, for sources that do not use the manager's cache.
type watching struct {
	request

	metadata bool // alone
	events   chan []event
}

type event struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

// watch begins with all there is, which a client asks for unless it has read a list. There is no history for one that has.
func (s *server) watch(ctx context.Context, req *http.Request, r request) (io.ReadCloser, error) {
	if req.URL.Query().Get("sendInitialEvents") != "true" {
		return nil, apierrors.NewResourceExpired("looptest has no history; watch with the initial events")
	}
	w := &watching{request: r, metadata: metadataAlone(req), events: make(chan []event, 1)}
	var initial []event
	version := 1
	for _, o := range s.live {
		if n, err := strconv.Atoi(o.GetResourceVersion()); err == nil {
			version = max(version, n)
		}
		initial = append(initial, w.of(change{id: idOf(o), after: o})...)
	}
	end := r.empty()
	end.SetName("")
	end.SetResourceVersion(strconv.Itoa(version))
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.put(append(initial, event{watch.Bookmark, w.form(end)}))
	s.watches = append(s.watches, w)
	out, in := io.Pipe()
	go func() {
		w.serve(ctx, in)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches = slices.DeleteFunc(s.watches, func(other *watching) bool { return other == w })
	}()
	// Whoever reads meets the end and no error, which watch.Filter would hold for ever.
	return struct {
		io.Reader
		io.Closer
	}{out, in}, nil
}

// serve sends what comes until ctx ends or nobody reads.
func (w *watching) serve(ctx context.Context, to *io.PipeWriter) {
	defer context.AfterFunc(ctx, func() { _ = to.Close() })()
	encoder := json.NewEncoder(to)
	for {
		select {
		case events := <-w.events:
			for _, e := range events {
				if encoder.Encode(e) != nil {
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// put adds to what waits to be sent. It does not wait.
func (w *watching) put(events []event) {
	select {
	case waiting := <-w.events:
		events = append(waiting, events...)
	default:
	}
	w.events <- events
}

// of returns what a change is for the watch: nothing, or an event.
func (w *watching) of(c change) []event {
	was, is := w.wants(c.before), w.wants(c.after)
	switch {
	case c.id.kind != w.kind || !was && !is:
		return nil
	case !was:
		return []event{{watch.Added, w.form(c.after)}}
	case is:
		return []event{{watch.Modified, w.form(c.after)}}
	}
	return []event{{watch.Deleted, w.form(c.before)}}
}

func (w *watching) wants(o *unstructured.Unstructured) bool {
	return o != nil && w.selects(o)
}

func (w *watching) form(o *unstructured.Unstructured) any {
	if w.metadata {
		return metadataOf(o)
	}
	return o
}

// note keeps a change for whoever is to be told. The caller holds the lock.
func (s *server) note(c change) {
	if s.changed != nil {
		s.show = s.changed(c)
	}
	for _, w := range s.watches {
		if events := w.of(c); events != nil {
			w.put(events)
		}
	}
}

func metadataAlone(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
}

func metadataOf(o *unstructured.Unstructured) any {
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.Object["metadata"]}
}
