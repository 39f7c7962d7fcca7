package natsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Call is one request that the server's JetStream API received.
type Call struct {
	Time time.Time
	// Client is the name of the connection that sent it.
	Client string
	// Op is the operation in the API's terms: STREAM.CREATE, CONSUMER.INFO and so on.
	Op string
	// Stream and Consumer are what it is about; empty where the operation has none.
	Stream, Consumer string
	// Request is the body.
	Request string
	// Err is the server's reason for refusing, or empty.
	Err string
}

// Mutating tells whether the request can change a stream or a consumer.
func (c Call) Mutating() bool {
	switch c.Op {
	case "STREAM.CREATE", "STREAM.UPDATE", "STREAM.DELETE", "STREAM.PURGE", "STREAM.MSG.DELETE",
		"STREAM.RESTORE", "STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN",
		"CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE", "CONSUMER.DELETE", "CONSUMER.PAUSE",
		"CONSUMER.UNPIN", "CONSUMER.RESET", "CONSUMER.LEADER.STEPDOWN":
		return true
	}
	return false
}

// String is for people: the operation, what it is about, and why it was refused.
func (c Call) String() string {
	parts := []string{c.Op}
	if c.Stream != "" {
		parts = append(parts, strings.TrimSuffix(c.Stream+"/"+c.Consumer, "/"))
	}
	if c.Err != "" {
		parts = append(parts, "refused: "+c.Err)
	}
	return strings.Join(parts, " ")
}

// Calls returns the requests answered so far, oldest first, without those of the log itself.
func (s *Server) Calls(ctx context.Context) ([]Call, error) { return s.log.read(ctx) }

// Mutations returns the requests answered so far that can change something.
func (s *Server) Mutations(ctx context.Context) ([]Call, error) {
	all, err := s.Calls(ctx)
	return slices.DeleteFunc(all, func(c Call) bool { return !c.Mutating() }), err
}

// logClient is the name of the log's own connection.
const logClient = "natsserver call log"

// callLog listens to the audit advisories that the server publishes for each request it
// answers.
type callLog struct {
	conn *nats.Conn

	mu    sync.Mutex
	calls []Call
	own   chan struct{} // one for each of the log's own requests
}

func openCallLog(s *server.Server) (*callLog, error) {
	conn, err := nats.Connect("", nats.InProcessServer(s), nats.Name(logClient))
	if err != nil {
		return nil, fmt.Errorf("connect the call log: %w", err)
	}
	l := &callLog{conn: conn, own: make(chan struct{}, 1)}
	sub, err := conn.Subscribe(server.JSAuditAdvisory, l.advisory)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("subscribe the call log: %w", err)
	}
	return l, nil
}

func (l *callLog) close() { l.conn.Close() }

func (l *callLog) advisory(m *nats.Msg) {
	var a server.JSAPIAudit
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return // no audit; the subject carries nothing else
	}
	if a.Client != nil && a.Client.Name == logClient {
		l.own <- struct{}{}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, newCall(a))
}

// read waits until every request answered before it has arrived: the server publishes
// audits in the order of its answers, so after the audit of a request of its own the log
// is complete. It asks twice because a request's answer leaves the server a moment before
// its audit does.
func (l *callLog) read(ctx context.Context) ([]Call, error) {
	for range 2 {
		if l.conn.IsClosed() {
			return nil, errStopped
		}
		if _, err := l.conn.RequestWithContext(ctx, server.JSApiAccountInfo, nil); err != nil {
			return nil, fmt.Errorf("read the call log: %w", err)
		}
		select {
		case <-l.own:
		case <-ctx.Done():
			return nil, fmt.Errorf("read the call log: %w", ctx.Err())
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls), nil
}

func newCall(a server.JSAPIAudit) Call {
	c := Call{Time: a.Time, Request: a.Request, Err: refusal(a.Response)}
	if a.Client != nil {
		c.Client = a.Client.Name
	}
	c.Op, c.Stream, c.Consumer = parseSubject(a.Subject)
	return c
}

// parseSubject takes a request's subject apart: $JS.API.<operation>[.<stream>[.<consumer>]].
// Operations are words of capitals; what follows the stream and the consumer is a filter.
func parseSubject(subject string) (op, stream, consumer string) {
	_, rest, ok := strings.Cut(subject, ".API.")
	if !ok {
		return subject, "", ""
	}
	for _, known := range operations {
		names, ok := strings.CutPrefix(rest, known)
		if !ok || names != "" && names[0] != '.' {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(names, "."), ".")
		stream = parts[0]
		if strings.HasPrefix(known, "CONSUMER.") && len(parts) > 1 {
			consumer = parts[1]
		}
		return known, stream, consumer
	}
	return rest, "", ""
}

// operations are those with names behind them, longer ones before their prefixes.
var operations = []string{ //nolint:gochecknoglobals // a constant table
	"STREAM.CREATE", "STREAM.UPDATE", "STREAM.INFO", "STREAM.DELETE", "STREAM.PURGE",
	"STREAM.SNAPSHOT", "STREAM.RESTORE", "STREAM.MSG.GET", "STREAM.MSG.DELETE",
	"STREAM.PEER.REMOVE", "STREAM.LEADER.STEPDOWN",
	"CONSUMER.DURABLE.CREATE", "CONSUMER.CREATE", "CONSUMER.INFO", "CONSUMER.DELETE",
	"CONSUMER.PAUSE", "CONSUMER.UNPIN", "CONSUMER.RESET", "CONSUMER.NAMES", "CONSUMER.LIST",
	"CONSUMER.LEADER.STEPDOWN",
}

func refusal(response string) string {
	var r struct {
		Error *server.ApiError `json:"error"`
	}
	if json.Unmarshal([]byte(response), &r) != nil || r.Error == nil {
		return ""
	}
	return fmt.Sprintf("%s (%d)", r.Error.Description, r.Error.ErrCode)
}
