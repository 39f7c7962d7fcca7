package cli

import (
	"bytes"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// position is how far the log of a container was read. Its times are those that the container's node has put in front of the
// lines, so that it does not matter what this machine's clock says, or whether a line has a time of its own.
type position struct {
	newest time.Time // of the lines that were read; zero before the first
	taken  map[stampedLine]int
}

// stampedLine is a line, and when the node got it.
type stampedLine struct {
	at   time.Time
	text string
}

// overlap is how much of a log is read again. A container has two outputs, and of two lines of the same moment the later one may
// have the earlier time.
const overlap = 2 * time.Second

// since is from when on a log is read again; nil means from its beginning. The API server takes whole seconds.
func (p *position) since() *metav1.Time {
	if p.newest.IsZero() {
		return nil
	}
	return &metav1.Time{Time: p.newest.Add(-overlap).Truncate(time.Second)}
}

// reading returns what tells, for one reading from since on, whether a line is a new one. A line that has been written several
// times at one moment is as many lines.
func (p *position) reading() (isNew func(stampedLine) bool) {
	again := maps.Clone(p.taken)
	return func(line stampedLine) bool {
		p.reach(line.at)
		if again[line] > 0 {
			again[line]--
			return false
		}
		if p.taken == nil {
			p.taken = map[stampedLine]int{}
		}
		p.taken[line]++
		return true
	}
}

// reach notes the time of a line, and forgets the lines that are not read again.
func (p *position) reach(at time.Time) {
	if !at.After(p.newest) {
		return
	}
	p.newest = at
	from := p.since()
	maps.DeleteFunc(p.taken, func(line stampedLine, _ int) bool { return !line.at.IsZero() && line.at.Before(from.Time) })
}

// split returns a line of a log without the time in front of it. The time is zero if there is none.
func split(text []byte) stampedLine {
	stamp, rest, found := bytes.Cut(text, []byte(" "))
	if at, err := time.Parse(time.RFC3339Nano, string(stamp)); found && err == nil {
		return stampedLine{at.UTC(), string(rest)}
	}
	return stampedLine{text: string(text)}
}
