package trace

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A Ring keeps records in a form of its own: less than half the size of the Go values, without pointers
// for the garbage collector to follow. It is never stored anywhere else, so it has no version.

// appendRecord appends the encoded form of r: its size, the common part, the event.
func appendRecord(b []byte, r Record) []byte {
	const size = 4
	start := len(b)
	b = append(b, make([]byte, size)...)
	b = binary.AppendVarint(b, r.Time.UnixNano())
	b = binary.AppendUvarint(b, r.Pass)
	for _, s := range [...]string{r.Controller, r.Object.Kind, r.Object.Namespace, r.Object.Name, r.Object.UID} {
		b = appendText(b, s)
	}
	texts, fields := textsOf(r.Event)
	b = append(b, tagOf(r.Event))
	for _, s := range texts {
		b = appendText(b, s)
	}
	for _, n := range numbersOf(r.Event) {
		b = binary.AppendVarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, s := range fields {
		b = appendText(b, s)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start)) // texts are at most 4 KiB
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// sizeOf returns the size of the first encoded record in b.
func sizeOf(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }

// decodeRecord decodes the first record in b.
func decodeRecord(b []byte) Record {
	d := decoder{string(b[4:sizeOf(b)])} // which all texts share
	var r Record
	r.Time = time.Unix(0, d.varint())
	r.Pass = d.uvarint()
	r.Controller = d.text()
	r.Object = Object{Kind: d.text(), Namespace: d.text(), Name: d.text(), UID: d.text()}
	tag := d.rest[0]
	d.rest = d.rest[1:]
	var texts [4]string
	for i := range texts {
		texts[i] = d.text()
	}
	var numbers [3]int64
	for i := range numbers {
		numbers[i] = d.varint()
	}
	var fields []string
	for range d.uvarint() {
		fields = append(fields, d.text())
	}
	r.Event = eventOf(tag, texts, numbers, fields)
	return r
}

// decoder reads what appendRecord wrote.
type decoder struct{ rest string }

func (d *decoder) uvarint() (n uint64) {
	for shift := 0; ; shift += 7 {
		c := d.rest[0]
		d.rest = d.rest[1:]
		if n |= uint64(c&0x7f) << shift; c < 0x80 {
			return n
		}
	}
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1) // the zigzag of package binary
}

func (d *decoder) text() string {
	n := d.uvarint()
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

const (
	tagStart byte = iota
	tagDecision
	tagCall
	tagDrift
	tagWrite
	tagTransition
	tagEnd
)

func tagOf(e Event) byte {
	switch e.(type) {
	case Start:
		return tagStart
	case Decision:
		return tagDecision
	case Call:
		return tagCall
	case Drift:
		return tagDrift
	case Write:
		return tagWrite
	case Transition:
		return tagTransition
	case End:
		return tagEnd
	}
	panic(fmt.Sprintf("trace: event %T has no tag; add it to tagOf", e))
}

// numbersOf returns what is no text in e.
func numbersOf(e Event) [3]int64 {
	switch e := e.(type) {
	case Start:
		return [3]int64{e.Generation, int64(e.Attempt), bit(e.Deleting) | bit(e.Vanished)<<1}
	case Call:
		return [3]int64{bit(e.Mutating), int64(e.Took)}
	case End:
		return [3]int64{int64(e.Again), int64(e.Took)}
	case Decision, Drift, Write, Transition:
	}
	return [3]int64{}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// eventOf is the inverse of tagOf, textsOf and numbersOf.
func eventOf(tag byte, t [4]string, n [3]int64, fields []string) Event {
	switch tag {
	case tagStart:
		return Start{Generation: n[0], ResourceVersion: t[0], Attempt: int(n[1]), Deleting: n[2]&1 != 0, Vanished: n[2]&2 != 0}
	case tagDecision:
		return Decision{Rule: t[0], Action: t[1], Because: t[2]}
	case tagCall:
		return Call{Op: t[0], Target: t[1], Result: t[2], Err: t[3], Mutating: n[0] != 0, Took: time.Duration(n[1])}
	case tagDrift:
		return Drift{Path: t[0], Want: t[1], Have: t[2], Effect: t[3]}
	case tagWrite:
		return Write{Verb: t[0], Subresource: t[1], ResourceVersion: t[2], Err: t[3], Fields: fields}
	case tagTransition:
		return Transition{From: t[0], To: t[1], Reason: t[2], Message: t[3]}
	case tagEnd:
		return End{Outcome: t[0], Err: t[1], Again: time.Duration(n[0]), Took: time.Duration(n[1])}
	}
	panic(fmt.Sprintf("trace: tag %d is not handled in eventOf; add it there", tag))
}
