package natsserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// proxy is between clients and the server. It records each request before the server receives it, and
// each answer before the client receives it. The audit advisories of the server are no substitute:
// they arrive in any order, and after the answers.
//
// It implements only the part of the client protocol that is needed to separate messages; see
// https://docs.nats.io/reference/reference-protocols/nats-protocol.
type proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error) // to the server
	log      *callLog

	refused atomic.Int64 // connections that the server refused because of their credentials

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

func openProxy(l net.Listener, dial func() (net.Conn, error), log *callLog) *proxy {
	p := &proxy{listener: l, dial: dial, log: log, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection until either side closes it.
func (p *proxy) serve(client net.Conn) {
	defer p.drop(client)
	server, err := p.dial()
	if err != nil || !p.keep(client, server) {
		return // the client's connection is closed
	}
	defer p.drop(server)

	var wg sync.WaitGroup
	wg.Go(func() {
		defer p.drop(server)
		_ = carry(client, server, (&requests{log: p.log}).see)
	})
	wg.Go(func() {
		defer p.drop(client)
		_ = carry(server, client, answers{log: p.log, refused: &p.refused}.see)
	})
	wg.Wait()
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.closed
}

func (p *proxy) drop(c net.Conn) {
	_ = c.Close() // closing twice is harmless
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// frame is one protocol line and its payload.
type frame struct {
	op   string
	args []string
	// line is the whole line and body what follows it, both with their line ends.
	line, body []byte
}

// payload returns the message of a frame, without headers and line end.
func (f frame) payload() []byte {
	b := bytes.TrimSuffix(f.body, []byte("\r\n"))
	if f.op != "HPUB" && f.op != "HMSG" || len(f.args) < 2 {
		return b
	}
	n, err := strconv.Atoi(f.args[len(f.args)-2])
	if err != nil || n < 0 || n > len(b) {
		return b
	}
	return b[n:]
}

// carry copies frames until the connection ends. It calls see with each frame and drops the frame if
// see returns false.
func carry(from io.Reader, to io.Writer, see func(frame) bool) error {
	r := bufio.NewReader(from)
	for {
		f, err := read(r)
		if err != nil {
			return err
		}
		if !see(f) {
			continue
		}
		if _, err := to.Write(append(f.line, f.body...)); err != nil {
			return err
		}
	}
}

// errFrame is the error for a connection that uses another protocol.
var errFrame = errors.New("not the NATS client protocol")

// maxBody is larger than any server accepts.
const maxBody = 64 << 20

func read(r *bufio.Reader) (frame, error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return frame{}, err
	}
	f := frame{line: line}
	op, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
	f.op = string(bytes.ToUpper(op))
	switch f.op {
	case "PUB", "HPUB", "MSG", "HMSG":
	case "CONNECT":
		f.args = []string{string(rest)}
		return f, nil
	default:
		return f, nil
	}
	for a := range bytes.FieldsSeq(rest) {
		f.args = append(f.args, string(a))
	}
	if len(f.args) < 2 {
		return f, fmt.Errorf("%w: %q", errFrame, line)
	}
	n, err := strconv.Atoi(f.args[len(f.args)-1])
	if err != nil || n < 0 || n > maxBody {
		return f, fmt.Errorf("%w: %q", errFrame, line)
	}
	f.body = make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(r, f.body)
	return f, err
}

// requests reads what one client sends.
type requests struct {
	log  *callLog
	name string
}

func (s *requests) see(f frame) bool {
	switch f.op {
	case "CONNECT":
		var c struct{ Name string }
		if json.Unmarshal([]byte(f.args[0]), &c) == nil {
			s.name = c.Name
		}
	case "PUB": // PUB <subject> [reply] <size>
		return s.note(f, len(f.args) == 3)
	case "HPUB": // HPUB <subject> [reply] <header size> <size>
		return s.note(f, len(f.args) == 4)
	}
	return true
}

func (s *requests) note(f frame, hasReply bool) bool {
	reply := ""
	if hasReply {
		reply = f.args[1]
	}
	return s.log.request(s.name, f.args[0], reply, f.payload())
}

// answers reads what the server sends to one client.
type answers struct {
	log     *callLog
	refused *atomic.Int64
}

func (s answers) see(f frame) bool {
	if f.op == "-ERR" && bytes.Contains(bytes.ToLower(f.line), []byte("auth")) {
		s.refused.Add(1)
	}
	if f.op == "MSG" || f.op == "HMSG" { // MSG <subject> <sid> [reply] <size>
		s.log.answer(f.args[0], f.payload())
	}
	return true
}
