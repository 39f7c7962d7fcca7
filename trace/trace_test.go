package trace_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/trace"
	"github.com/trimtab-dev/trimtab/trace/tracetest"
)

var update = flag.Bool("update", false, "accept what is rendered now into testdata")

// events holds one zero value of each event; TestEveryEventIsListed keeps it complete.
var events = []trace.Event{
	trace.Start{}, trace.Decision{}, trace.Call{}, trace.Drift{}, trace.Write{}, trace.Transition{}, trace.End{},
}

func TestEveryEventIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "event" {
			want = append(want, f.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	for _, e := range events {
		got = append(got, reflect.TypeOf(e).Name())
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events that the tests below leave out (-want +got):\n%s", diff)
	}
}

// fill sets every field of e: texts to text, everything else to something not zero.
func fill(t *testing.T, e trace.Event, text string) trace.Event {
	t.Helper()
	v := reflect.New(reflect.TypeOf(e)).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Interface().(type) {
		case string:
			f.SetString(text)
		case []string:
			f.Set(reflect.ValueOf([]string{text, text}))
		case bool:
			f.SetBool(true)
		case int, int64, time.Duration:
			f.SetInt(int64(7*time.Second) + int64(i))
		default:
			t.Fatalf("%T.%s has type %s, which this test cannot fill; teach it", e, v.Type().Field(i).Name, f.Type())
		}
	}
	return v.Interface().(trace.Event)
}

func record(e trace.Event) trace.Record {
	return trace.Record{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC), Controller: "stream",
		Object: trace.Object{Kind: "Stream", Namespace: "default", Name: "orders", UID: "u-1"}, Pass: 7, Event: e,
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, zero := range events {
		for name, e := range map[string]trace.Event{"zero": zero, "full": fill(t, zero, "täxt \"<&> \n")} {
			t.Run(fmt.Sprintf("%T %s", zero, name), func(t *testing.T) {
				var out bytes.Buffer
				want := record(e)
				trace.JSON(&out).Record(want)
				if n := strings.Count(out.String(), "\n"); n != 1 {
					t.Errorf("%d lines for one record: %q", n, out.String())
				}
				for got, err := range trace.Decode(&out) {
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("read back (-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

// A field of an event that is called like one of the record would hide it.
func TestJSONFieldsDoNotCollide(t *testing.T) {
	for _, zero := range events {
		for f := range reflect.TypeOf(zero).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if slices.Contains([]string{"", "time", "controller", "object", "pass", "event"}, name) {
				t.Errorf("%T.%s has the JSON name %q, which the record needs itself", zero, f.Name, name)
			}
		}
	}
}

func TestJSONForm(t *testing.T) {
	got, err := json.Marshal(record(trace.Call{Op: "create", Target: "orders", Mutating: true, Took: time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-01-02T03:04:05.678Z","controller":"stream",` +
		`"object":{"kind":"Stream","namespace":"default","name":"orders","uid":"u-1"},` +
		`"pass":7,"event":"call","op":"create","target":"orders","mutating":true,"took":1000000}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("programs read this form (-want +got):\n%s", diff)
	}
}

func TestDecode(t *testing.T) {
	good := `{"controller":"a","event":"end","outcome":"Done"}`
	tests := map[string]struct {
		why   string
		input string
		want  []string
	}{
		"empty":      {why: "no line is no record", input: "", want: nil},
		"blank":      {why: "people edit files", input: "\n" + good + "\n\n", want: []string{"Done"}},
		"torn":       {why: "a killed process leaves half a line", input: good + "\n" + good[:20], want: []string{"Done"}},
		"broken":     {why: "one bad line does not hide the rest", input: "{\n" + good + "\n", want: []string{"read trace line 1: unexpected end of JSON input", "Done"}},
		"unfamiliar": {why: "the writer may be newer", input: `{"event":"levitate"}` + "\n" + good + "\n", want: []string{`read trace line 1: unknown trace event "levitate"; it may have been written by a newer version`, "Done"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for r, err := range trace.Decode(strings.NewReader(tt.input)) {
				if err != nil {
					got = append(got, err.Error())
					continue
				}
				got = append(got, r.Event.(trace.End).Outcome)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

// Whatever text field of whatever event a credential is put into as part of a URL, and
// whichever way the record takes, the credential does not come out.
func TestNoCredentialPasses(t *testing.T) {
	const canary = "hunter2"
	for _, zero := range events {
		for name, text := range map[string]string{
			"password":     "dial nats://admin:" + canary + "@nats:4222: refused",
			"token":        "dial nats://" + canary + "@nats",
			"list":         "nats://a:b@one,nats://c:" + canary + "@two",
			"at the end":   "postgres://u:" + canary + "@h",
			"with an @":    "x://u:" + canary + "@" + canary + "@h/path",
			"in the quote": `parse "nats://u:` + canary + `@h": invalid`,
		} {
			t.Run(fmt.Sprintf("%T %s", zero, name), func(t *testing.T) {
				var out bytes.Buffer
				ring := trace.NewRing(trace.RingOptions{})
				pass := trace.NewPass(trace.Multi(trace.JSON(&out), trace.Text(&out), ring), "c", trace.Object{}, 1)
				pass.Emit(fill(t, zero, text))
				kept := ring.Select(trace.Query{})
				fmt.Fprintf(&out, "%+v\n%s", kept, trace.Transcript(kept))
				if strings.Contains(out.String(), canary) {
					t.Errorf("the credential came out:\n%s", out.String())
				}
				if !strings.Contains(out.String(), trace.Redacted) {
					t.Errorf("nothing was redacted, so nothing was tested:\n%s", out.String())
				}
			})
		}
	}
}

func TestCleanLeavesTheRest(t *testing.T) {
	for _, text := range []string{
		"", "no url", "mail anna@example.com", "http://h:80/path@v1?x=a@b", "see http://h and anna@example.com", "://", "a://b",
	} {
		var rec tracetest.Recorder
		trace.NewPass(&rec, "c", trace.Object{}, 1).Emit(trace.End{Err: text})
		if got := tracetest.Events[trace.End](rec.Records())[0].Err; got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestNewDrift(t *testing.T) {
	type limits struct {
		Max int `json:"max"`
	}
	tests := map[string]struct {
		why        string
		want, have any
		sensitive  bool
		drift      trace.Drift
	}{
		"numbers":   {why: "plain", want: 10, have: 5, drift: trace.Drift{Want: "10", Have: "5"}},
		"strings":   {why: "an empty string must be seen", want: "a", have: "", drift: trace.Drift{Want: `"a"`, Have: `""`}},
		"unset":     {why: "unset is not empty", want: nil, have: new("x"), drift: trace.Drift{Want: "(unset)", Have: `"x"`}},
		"durations": {why: "nobody reads nanoseconds", want: time.Minute, have: time.Hour, drift: trace.Drift{Want: "1m0s", Have: "1h0m0s"}},
		"structs":   {why: "as in the manifest", want: limits{1}, have: &limits{2}, drift: trace.Drift{Want: `{"max":1}`, Have: `{"max":2}`}},
		"hopeless":  {why: "no JSON form", want: make(chan int), have: 1, drift: trace.Drift{Want: "(chan int)", Have: "1"}},
		"sensitive": {why: "neither side shows", want: "hunter2", have: "hunter1", sensitive: true, drift: trace.Drift{Want: trace.Redacted, Have: trace.Redacted}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.drift.Path, tt.drift.Effect = "spec.x", "InPlace"
			got := trace.NewDrift("spec.x", tt.want, tt.have, "InPlace", tt.sensitive)
			if diff := cmp.Diff(tt.drift, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
	t.Run("large", func(t *testing.T) {
		got := trace.NewDrift("p", strings.Repeat("ä", 10_000), nil, "", false).Want
		if len(got) > 300 || !strings.HasSuffix(got, "ä…") {
			t.Errorf("a large value is not cut between runes: %d bytes, ends in %q", len(got), got[len(got)-8:])
		}
	})
}

// life is one pass with every kind of event; its volatile parts depend on seed.
func life(sink trace.Sink, seed int) {
	rv := fmt.Sprint(1000 + seed)
	object := trace.Object{Kind: "Stream", Namespace: "default", Name: "orders", UID: "uid-" + rv}
	other := trace.NewPass(sink, "consumer", trace.Object{Kind: "Consumer", Namespace: "default", Name: "billing"}, uint64(seed))
	p := trace.NewPass(sink, "stream", object, uint64(seed))
	p.Emit(trace.Start{Generation: 1, ResourceVersion: rv})
	other.Emit(trace.Start{Generation: 1, Attempt: 2, Deleting: true})
	p.Emit(trace.Call{Op: "observe", Target: "orders", Result: "Available", Took: time.Duration(seed) * time.Millisecond})
	p.Emit(trace.NewDrift("spec.maxBytes", 1024, 512, "InPlace", false))
	p.Emit(trace.Decision{Rule: "E19", Action: "update", Because: "spec.maxBytes differs"})
	p.Emit(trace.Call{Op: "update", Target: "orders", Mutating: true, Err: "10047: \x1b[31minsufficient\nstorage", Took: time.Duration(seed)})
	p.Emit(trace.Write{Verb: "patch", Subresource: "status", Fields: []string{"state", "conditions"}, ResourceVersion: rv})
	p.Emit(trace.Write{Verb: "patch", Fields: []string{"metadata.annotations"}, Err: "conflict"})
	p.Emit(trace.Transition{From: "Succeeded", To: "Failed", Reason: "Refused", Message: "insufficient storage"})
	p.Emit(trace.End{Outcome: "Fail", Err: "insufficient storage", Again: 90 * time.Second, Took: time.Duration(seed) * time.Second})
	other.Emit(trace.End{Outcome: "Removed"})
}

func TestTranscript(t *testing.T) {
	render := func(seed int) string {
		var rec tracetest.Recorder
		life(&rec, seed)
		life(&rec, seed) // numbers begin anew in another process
		return trace.Transcript(rec.Records())
	}
	got := render(1)
	tracetest.Compare(t, "testdata/transcript.txt", got, *update)
	if diff := cmp.Diff(got, render(77)); diff != "" {
		t.Errorf("something volatile is in the transcript (-first run +second run):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time begins at a fixed point
		var out bytes.Buffer
		life(trace.Text(&out), 1)
		tracetest.Compare(t, "testdata/text.txt", out.String(), *update)
	})
}

func TestDurationsAreBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1500 * time.Nanosecond: "2µs", 1234567 * time.Nanosecond: "1.2ms", 1234 * time.Millisecond: "1.23s",
		10 * time.Second: "10s", 10 * time.Minute: "10m", 10*time.Minute + 10*time.Second: "10m10s",
		time.Hour: "1h", 20 * time.Hour: "20h", 9*time.Hour + 12*time.Minute + 7*time.Second: "9h12m", 10*time.Hour + 10*time.Minute: "10h10m",
	} {
		got := trace.Transcript([]trace.Record{record(trace.End{Outcome: "Done", Again: d})})
		if !strings.HasSuffix(got, "; again in "+want+"\n") {
			t.Errorf("%s is shown as %q, want %s", d, got, want)
		}
	}
}
