package crash

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/test/fault/natsfake"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios"
)

// realNATS is a NATS server as scenarios see it.
type realNATS struct {
	t    *testing.T
	conn *nats.Conn
}

var _ scenarios.Bystander = realNATS{}

// Request sends a request to the JetStream API.
func (n realNATS) Request(subject string, body []byte) []byte {
	n.t.Helper()
	m, err := n.conn.Request(subject, body, poll.Patience)
	if err != nil {
		n.t.Fatalf("%s: %v", subject, err)
	}
	return m.Data
}

// Resources lists streams and consumers. What goes while it looks is left out.
func (n realNATS) Resources() []fault.Resource {
	n.t.Helper()
	js, err := jetstream.New(n.conn)
	if err != nil {
		n.t.Fatal(err)
	}
	var all []fault.Resource
	streams := js.ListStreams(n.t.Context())
	for info := range streams.Info() {
		all = append(all, natsfake.StreamResource(info.Config))
		stream, err := js.Stream(n.t.Context(), info.Config.Name)
		if err != nil {
			continue
		}
		for c := range stream.ListConsumers(n.t.Context()).Info() {
			all = append(all, natsfake.ConsumerResource(info.Config.Name, c.Config))
		}
	}
	if err := streams.Err(); err != nil {
		n.t.Fatal(err)
	}
	natsfake.Sort(all)
	return all
}
