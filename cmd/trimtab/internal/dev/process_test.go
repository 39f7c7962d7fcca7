package dev

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOperatorLog: an ordinary start and end are not shown, what goes wrong in them is, and transitions are shown elsewhere.
func TestOperatorLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &operatorLog{out: &out}
	write := func(text string) {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("10:00:00.000  INFO   starting  debug-address=127.0.0.1:4712 health-address=127.0.0.1:4711 name=widgets\n")
	if got := l.address() + " " + l.debugAddress(); got != "127.0.0.1:4711 127.0.0.1:4712" {
		t.Errorf("the addresses are %q", got)
	}
	l.show()
	write("10:00:01.000  INFO   asked the API  name=first object.name=first reconcileID=1-2\nmy own ")
	write("line\n10:00:02.000  INFO   the object matches its spec  name=first from=\"\" to=Succeeded reason=Succeeded\n")
	write("10:00:03.000  ERROR  cannot ask  name=first from=Pending to=Failed reason=X\n")
	l.stopping()
	write("10:00:04.000  INFO   Stopping\n10:00:05.000  WARN   a pass did not finish\n")
	want := "      | 10:00:01.000  INFO   asked the API  name=first\n" +
		"      | my own line\n" +
		"      | 10:00:03.000  ERROR  cannot ask  name=first from=Pending to=Failed reason=X\n" +
		"      | 10:00:05.000  WARN   a pass did not finish\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
}

// TestOperatorLogOfAFailedStart: what was kept is shown.
func TestOperatorLogOfAFailedStart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &operatorLog{out: &out}
	if _, err := l.Write([]byte("panic: a mistake\n")); err != nil {
		t.Fatal(err)
	}
	l.flush()
	if want := "      | panic: a mistake\n"; out.String() != want {
		t.Errorf("shown: %q, want %q", out.String(), want)
	}
}
