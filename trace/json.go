package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"
)

// header is the part of the JSON form that all records have in common.
type header struct {
	Time       time.Time `json:"time"`
	Controller string    `json:"controller"`
	Object     Object    `json:"object"`
	Pass       uint64    `json:"pass"`
	Event      string    `json:"event"`
}

// MarshalJSON returns the record as one JSON object; see [Record].
func (r Record) MarshalJSON() ([]byte, error) {
	if r.Event == nil {
		return nil, errors.New("a trace record without an event has no JSON form")
	}
	head, err := json.Marshal(header{r.Time, r.Controller, r.Object, r.Pass, eventName(r.Event)})
	if err != nil {
		return nil, err
	}
	fields, err := json.Marshal(r.Event)
	if err != nil {
		return nil, err
	}
	if string(fields) == "{}" {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), fields[1:]...), nil
}

// UnmarshalJSON reads the output of [Record.MarshalJSON]. An unknown event is an error.
func (r *Record) UnmarshalJSON(data []byte) error {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	e, err := decodeEvent(h.Event, data)
	if err != nil {
		return err
	}
	*r = Record{Time: h.Time, Controller: h.Controller, Object: h.Object, Pass: h.Pass, Event: e}
	return nil
}

// eventName returns the event's name in JSON.
func eventName(e Event) string {
	switch e.(type) {
	case Start:
		return "start"
	case Decision:
		return "decision"
	case Call:
		return "call"
	case Drift:
		return "drift"
	case Write:
		return "write"
	case Transition:
		return "transition"
	case End:
		return "end"
	}
	panic(fmt.Sprintf("trace: event %T has no name; add it to eventName", e))
}

func decodeEvent(name string, data []byte) (Event, error) {
	switch name {
	case "start":
		return decodeAs[Start](data)
	case "decision":
		return decodeAs[Decision](data)
	case "call":
		return decodeAs[Call](data)
	case "drift":
		return decodeAs[Drift](data)
	case "write":
		return decodeAs[Write](data)
	case "transition":
		return decodeAs[Transition](data)
	case "end":
		return decodeAs[End](data)
	}
	return nil, fmt.Errorf("unknown trace event %q; it may have been written by a newer version", name)
}

func decodeAs[E Event](data []byte) (Event, error) {
	var e E
	err := json.Unmarshal(data, &e)
	return e, err
}

type jsonSink struct {
	mu sync.Mutex
	w  io.Writer
}

// JSON returns a sink that writes each record to w as one line, in one call of Write, so that
// written records survive a crash of the process. Records that w refuses are lost. If w can
// block, as a pipe can, wrap the sink in a [Buffer].
func JSON(w io.Writer) Sink { return &jsonSink{w: w} }

func (s *jsonSink) Record(r Record) {
	line, err := json.Marshal(r)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.w.Write(append(line, '\n')) // there is nowhere to report it
}

// Decode reads the lines that a [JSON] sink wrote, as they arrive from r. A line that cannot be
// decoded yields an error with its number, and decoding continues with the next line. Empty lines
// and an incomplete last line, which a killed process may leave, are skipped.
func Decode(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("read trace line %d: %w", n, err))
				return
			}
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			if !yield(decodeLine(n, line)) {
				return
			}
		}
	}
}

func decodeLine(n int, line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("read trace line %d: %w", n, err)
	}
	return r, nil
}
