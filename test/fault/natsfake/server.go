// Package natsfake is as much of a NATS server, in memory, as the NATS sample talks to: the
// JetStream API's streams and consumers by subject and body, with the server's own answers
// and refusals. There are no messages in it and no network.
//
// That it answers as NATS does is a test, which asks both the same at random. Begin with
// [New] and [Server.Request].
package natsfake

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Server holds streams and their consumers. Make one with [New]; it is safe for concurrent
// use.
type Server struct {
	mu      sync.Mutex
	streams map[string]*stream
	// disabled: the account has no JetStream.
	disabled bool
	// late is how long a new stream is not shown yet.
	late time.Duration
	// entrusted are streams whose owners people agreed on, whatever their marks say.
	entrusted map[string]string
}

type stream struct {
	config    jetstream.StreamConfig
	created   time.Time
	consumers map[string]*consumer
}

type consumer struct {
	config  jetstream.ConsumerConfig
	created time.Time
}

var _ fault.Cloner = (*Server)(nil)

// New makes a server without streams.
func New() *Server { return &Server{streams: map[string]*stream{}, entrusted: map[string]string{}} }

// Clone returns a copy that shares nothing with s.
func (s *Server) Clone() fault.ExternalAPI {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := New()
	c.disabled, c.late = s.disabled, s.late
	maps.Copy(c.entrusted, s.entrusted)
	for name, original := range s.streams {
		copied := &stream{config: original.config, created: original.created, consumers: map[string]*consumer{}}
		for n, o := range original.consumers {
			copied.consumers[n] = new(*o) // configurations are replaced, never changed
		}
		c.streams[name] = copied
	}
	return c
}

// Resources returns the streams and consumers. Each belongs to the object of its ownership
// mark.
func (s *Server) Resources() []fault.Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []fault.Resource
	for name, st := range s.streams {
		made := StreamResource(st.config)
		if owner, agreed := s.entrusted[name]; agreed {
			made.Owner = owner
		}
		all = append(all, made)
		for _, c := range st.consumers {
			all = append(all, ConsumerResource(name, c.config))
		}
	}
	Sort(all)
	return all
}

// Sort orders resources by kind and name.
func Sort(all []fault.Resource) {
	slices.SortFunc(all, func(a, b fault.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
}

// StreamResource is a stream as invariants see it.
func StreamResource(c jetstream.StreamConfig) fault.Resource {
	metadata := c.Metadata
	c.Metadata = nil
	return resource("stream", c.Name, metadata, c)
}

// ConsumerResource is a consumer as invariants see it.
func ConsumerResource(stream string, c jetstream.ConsumerConfig) fault.Resource {
	metadata := c.Metadata
	c.Metadata = nil
	return resource("consumer", stream+"/"+c.Durable, metadata, c)
}

// resource describes what users care about: settings and labels of their own.
func resource(kind, id string, metadata map[string]string, config any) fault.Resource {
	labels := external.Unmark(metadata)
	maps.DeleteFunc(labels, func(k, _ string) bool { return strings.HasPrefix(k, serverKeys) })
	return fault.Resource{
		Kind: kind, ID: id, Owner: external.MarkOf(metadata)[external.MarkUID],
		State: text(config) + " " + text(labels), Ready: true,
	}
}

// answer is what a request comes to: JSON as NATS sends it.
type answer map[string]any

// Request answers one request. subject is a whole one, as $JS.API.STREAM.INFO.orders.
func (s *Server) Request(subject string, body []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, refused := s.serve(subject, body)
	if refused != nil {
		out = answer{"error": refused}
	}
	return []byte(text(out))
}

// Refusal is a request that is not carried out, as an answer: for failures that the server
// itself does not have.
func Refusal(status, code int, description string) []byte {
	return []byte(text(answer{"error": &refusal{status, code, description}}))
}

// IsRead tells the requests that change nothing.
func IsRead(subject string) bool {
	return strings.Contains(subject, ".STREAM.INFO.") || strings.Contains(subject, ".CONSUMER.INFO.")
}

// What names a request for people: "STREAM.CREATE orders".
func What(subject string) string {
	parts := strings.SplitN(strings.TrimPrefix(subject, apiPrefix), ".", 5)
	if len(parts) < 3 {
		return subject
	}
	return parts[0] + "." + parts[1] + " " + strings.Join(parts[2:min(4, len(parts))], "/")
}

const apiPrefix = "$JS.API."

// serve does what a request asks for.
func (s *Server) serve(subject string, body []byte) (answer, *refusal) {
	if s.disabled {
		return nil, notEnabled
	}
	tokens := strings.Split(strings.TrimPrefix(subject, apiPrefix), ".")
	if len(tokens) < 3 {
		return nil, badRequest
	}
	op, names := tokens[0]+"."+tokens[1], tokens[2:]
	switch op {
	case "STREAM.CREATE":
		return s.createStream(names[0], body)
	case "STREAM.UPDATE":
		return s.updateStream(names[0], body)
	case "STREAM.INFO":
		return s.streamInfo(names[0])
	case "STREAM.DELETE":
		return s.deleteStream(names[0])
	}
	if len(names) < 2 {
		return nil, badRequest
	}
	switch op {
	case "CONSUMER.CREATE":
		return s.sendConsumer(names[0], names[1], strings.Join(names[2:], "."), body)
	case "CONSUMER.INFO":
		return s.consumerInfo(names[0], names[1])
	case "CONSUMER.DELETE":
		return s.deleteConsumer(names[0], names[1])
	case "CONSUMER.PAUSE":
		return s.pauseConsumer(names[0], names[1], body)
	}
	return nil, badRequest
}

func text(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // subjects end with >
	if err := e.Encode(v); err != nil {
		panic("natsfake: " + err.Error()) // a mistake in this package
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Entrust says whose a stream is from now on: that of an object, as namespace/name, or, if
// owner is empty, nobody's. It is what people agree on, and changes nothing in NATS.
func (s *Server) Entrust(stream, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entrusted[stream] = owner
}

// ShowLate lets the server deny a new stream for a while, as one does whose answers come from
// a copy that is behind.
func (s *Server) ShowLate(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = by
}

// Enable gives the account JetStream, or takes it away; streams stay.
func (s *Server) Enable(enabled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disabled = !enabled
}
