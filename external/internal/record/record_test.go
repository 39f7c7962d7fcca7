package record

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func aRecord() Record {
	return Record{ID: "orders", Incarnation: 1, UID: "u1", Create: Marker{At: time.Date(2026, 1, 5, 10, 11, 12, 131415000, time.UTC), By: "pod"}}
}

const encoded = `{"id":"orders","inc":1,"uid":"u1","create":{"at":"2026-01-05T10:11:12.131415Z","by":"pod"}}`

func TestRecord(t *testing.T) {
	value, err := aRecord().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encoded, value); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
	back, err := Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	if back != aRecord() {
		t.Errorf("read back %+v", back)
	}
	if none, err := Parse(""); err != nil || none.Exists() || none.Progress() != MarkerNone {
		t.Errorf("no annotation: %+v, %v", none, err)
	}
}

func withOperation(call, id, at string) string {
	return strings.TrimSuffix(encoded, "}") + `,"op":{"id":"` + id + `","call":"` + call + `","at":"` + at + `","gen":1}}`
}

func TestRecordWithOperation(t *testing.T) {
	r := aRecord()
	r.Operation = Operation{ID: "op-1", Call: CallUpdate, At: time.Date(2026, 1, 5, 10, 11, 12, 0, time.UTC), Generation: 3}
	back, value, err := Settle(r)
	if err != nil || back != r {
		t.Errorf("%s was read back as %+v, %v", value, back, err)
	}
}

func TestCorruptRecords(t *testing.T) {
	tests := map[string]struct{ why, value, says string }{
		"cut off":           {"", encoded[:40], "cut off"},
		"no JSON":           {"", "{inc:1}", "no JSON at byte"},
		"two":               {"", encoded + encoded, "something follows"},
		"unknown field":     {"written by a newer version", strings.Replace(encoded, `"id"`, `"x":1,"id"`, 1), "not as trimtab writes it"},
		"no incarnation":    {"", strings.Replace(encoded, `"inc":1`, `"inc":0`, 1), "less than 1"},
		"negative":          {"", strings.Replace(encoded, `"inc":1`, `"inc":-3`, 1), "less than 1"},
		"no uid":            {"", strings.Replace(encoded, `"u1"`, `""`, 1), "names no object"},
		"no time":           {"", strings.Replace(encoded, "2026-01-05T10:11:12.131415Z", "0001-01-01T00:00:00Z", 1), "when the creation"},
		"not a time":        {"", strings.Replace(encoded, "2026-01-05", "soon", 1), "not as trimtab writes it"},
		"nobody":            {"", strings.Replace(encoded, `"pod"`, `""`, 1), "who prepared"},
		"text for number":   {"", strings.Replace(encoded, `"inc":1`, `"inc":"1"`, 1), `field "inc"`},
		"a list":            {"", `[]`, "holds a array"},
		"null":              {"", `null`, "less than 1"},
		"blanks":            {"edited by hand", " " + encoded, "not as trimtab writes it"},
		"upper-case field":  {"JSON in Go is not particular", strings.Replace(encoded, `"uid"`, `"UID"`, 1), "not as trimtab writes it"},
		"field twice":       {"which one holds?", strings.Replace(encoded, `"inc":1`, `"inc":1,"inc":2`, 1), "not as trimtab writes it"},
		"huge":              {"", strings.Replace(encoded, "orders", strings.Repeat("x", 9000), 1), "longer than"},
		"operation of what": {"", withOperation("merge", "op-1", "2026-01-05T10:11:12Z"), "not a create, update or delete"},
		"operation without": {"an id", withOperation("create", "", "2026-01-05T10:11:12Z"), "the id of its operation"},
		"operation since":   {"", withOperation("create", "op-1", "0001-01-01T00:00:00Z"), "when its operation began"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			r, err := Parse(test.value)
			if err == nil {
				t.Fatalf("%s: taken for %+v", test.why, r)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "trimtab.dev/external") {
				t.Errorf("%s: %v, want %q in it", test.why, err, test.says)
			}
		})
	}
}

// FuzzRecord checks that a value that can be read is exactly what would be written.
func FuzzRecord(f *testing.F) {
	f.Add(encoded)
	f.Add(`{"inc":1,"uid":"u","create":{"at":"2026-01-05T10:11:12Z","by":"p"},"done":"2026-01-05T10:11:12Z","adopted":"unmarked"}`)
	f.Add(`{"inc":1e0,"uid":"\u0075","create":{"at":"2026-01-05T10:11:12+00:00","by":"p"}}`)
	f.Fuzz(func(t *testing.T, value string) {
		r, err := Parse(value)
		if err != nil || value == "" {
			return
		}
		if again, err := r.Encode(); err != nil || again != value {
			t.Errorf("%q was read and is written as %q (%v)", value, again, err)
		}
	})
}
