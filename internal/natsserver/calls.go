package natsserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is a request to the JetStream API of the server.
type Call struct {
	// Time is when the request arrived.
	Time time.Time
	// Client is the name of the connection.
	Client string
	// Op is the operation, as the API names it: STREAM.CREATE, CONSUMER.INFO and so on.
	Op string
	// Stream and Consumer are the target, or empty if the operation has none.
	Stream, Consumer string
	// Request is the body.
	Request string
	// Answered reports whether the server has answered.
	Answered bool
	// Err is the reason for which the server refused the request, or empty.
	Err string

	reply string // the subject of the answer
}

// Mutating reports whether the request can change a stream or a consumer.
func (c Call) Mutating() bool {
	i := slices.IndexFunc(operations, func(o operation) bool { return o.name == c.Op })
	return i >= 0 && operations[i].mutating
}

// String returns the operation, its target, and why it was refused.
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

// Calls returns the requests received so far, oldest first. It includes every request whose answer a
// client has received.
func (s *Server) Calls() []Call { return s.log.read() }

// Mutations returns the requests received so far that can change something.
func (s *Server) Mutations() []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return !c.Mutating() })
}

// callLog records what the proxy has seen.
type callLog struct {
	received func(Call) bool
	answered func(Call)

	mu    sync.Mutex
	calls []Call
}

func (l *callLog) read() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// request records a request to the JetStream API and reports whether to pass it on to the server.
func (l *callLog) request(client, subject, reply string, body []byte) bool {
	c := Call{Time: time.Now(), Client: client, Request: string(body), reply: reply}
	var ok bool
	if c.Op, c.Stream, c.Consumer, ok = parseSubject(subject); !ok {
		return true
	}
	if l.received != nil && !l.received(c) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
	return true
}

// answer records the answer sent to subject, if it belongs to a recorded request.
func (l *callLog) answer(subject string, body []byte) {
	if c, ok := l.settle(subject, body); ok && l.answered != nil {
		l.answered(c)
	}
}

func (l *callLog) settle(subject string, body []byte) (Call, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range slices.Backward(l.calls) {
		if c.reply == "" || c.reply != subject || c.Answered {
			continue
		}
		l.calls[i].Answered, l.calls[i].Err = true, refusal(body)
		return l.calls[i], true
	}
	return Call{}, false
}

// parseSubject parses the subject of a request: $JS.API.<operation>[.<stream>[.<consumer>]]. A domain
// may precede API. What follows the consumer is a filter.
func parseSubject(subject string) (op, stream, consumer string, ok bool) {
	if !strings.HasPrefix(subject, "$JS.") {
		return "", "", "", false
	}
	_, rest, ok := strings.Cut(subject, ".API.")
	if !ok {
		return "", "", "", false
	}
	for _, o := range operations {
		names, ok := strings.CutPrefix(rest, o.name+".")
		if !ok {
			continue
		}
		parts := strings.Split(names, ".")
		if strings.HasPrefix(o.name, "CONSUMER.") && len(parts) > 1 {
			consumer = parts[1]
		}
		return o.name, parts[0], consumer, true
	}
	return rest, "", "", true
}

type operation struct {
	name     string
	mutating bool
}

// operations are the operations of the JetStream API that name a stream. Longer ones precede their
// prefixes.
var operations = []operation{ //nolint:gochecknoglobals // a constant table
	{"STREAM.CREATE", true},
	{"STREAM.UPDATE", true},
	{"STREAM.DELETE", true},
	{"STREAM.PURGE", true},
	{"STREAM.RESTORE", true},
	{"STREAM.MSG.DELETE", true},
	{"STREAM.PEER.REMOVE", true},
	{"STREAM.LEADER.STEPDOWN", true},
	{"STREAM.INFO", false},
	{"STREAM.SNAPSHOT", false},
	{"STREAM.MSG.GET", false},
	{"CONSUMER.DURABLE.CREATE", true},
	{"CONSUMER.CREATE", true},
	{"CONSUMER.DELETE", true},
	{"CONSUMER.PAUSE", true},
	{"CONSUMER.UNPIN", true},
	{"CONSUMER.RESET", true},
	{"CONSUMER.LEADER.STEPDOWN", true},
	{"CONSUMER.INFO", false},
	{"CONSUMER.NAMES", false},
	{"CONSUMER.LIST", false},
	{"CONSUMER.MSG.NEXT", false},
}

func refusal(response []byte) string {
	var r struct {
		Error *struct {
			Code        int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	if json.Unmarshal(response, &r) != nil || r.Error == nil {
		return ""
	}
	return fmt.Sprintf("%s (%d)", r.Error.Description, r.Error.Code)
}
