package external

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func aRecord() record {
	return record{ID: "orders", Incarnation: 1, UID: "u1", Create: marker{At: time.Date(2026, 1, 5, 10, 11, 12, 131415000, time.UTC), By: "pod"}}
}

const encoded = `{"id":"orders","inc":1,"uid":"u1","create":{"at":"2026-01-05T10:11:12.131415Z","by":"pod"}}`

func TestRecord(t *testing.T) {
	value, err := aRecord().encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(encoded, value); diff != "" {
		t.Errorf("encoded (-want +got):\n%s", diff)
	}
	back, err := parseRecord(value)
	if err != nil {
		t.Fatal(err)
	}
	if back != aRecord() {
		t.Errorf("read back %+v", back)
	}
	if none, err := parseRecord(""); err != nil || none.exists() || none.progress() != MarkerNone {
		t.Errorf("no annotation: %+v, %v", none, err)
	}
}

func TestCorruptRecords(t *testing.T) {
	tests := map[string]struct{ why, value, says string }{
		"cut off":          {"", encoded[:40], "cut off"},
		"no JSON":          {"", "{inc:1}", "no JSON at byte"},
		"two":              {"", encoded + encoded, "something follows"},
		"unknown field":    {"written by a newer version", strings.Replace(encoded, `"id"`, `"x":1,"id"`, 1), "not as trimtab writes it"},
		"no incarnation":   {"", strings.Replace(encoded, `"inc":1`, `"inc":0`, 1), "less than 1"},
		"negative":         {"", strings.Replace(encoded, `"inc":1`, `"inc":-3`, 1), "less than 1"},
		"no uid":           {"", strings.Replace(encoded, `"u1"`, `""`, 1), "names no object"},
		"no time":          {"", strings.Replace(encoded, "2026-01-05T10:11:12.131415Z", "0001-01-01T00:00:00Z", 1), "when the creation"},
		"not a time":       {"", strings.Replace(encoded, "2026-01-05", "soon", 1), "not as trimtab writes it"},
		"nobody":           {"", strings.Replace(encoded, `"pod"`, `""`, 1), "who prepared"},
		"text for number":  {"", strings.Replace(encoded, `"inc":1`, `"inc":"1"`, 1), `field "inc"`},
		"a list":           {"", `[]`, "holds a array"},
		"null":             {"", `null`, "less than 1"},
		"blanks":           {"edited by hand", " " + encoded, "not as trimtab writes it"},
		"upper-case field": {"JSON in Go is not particular", strings.Replace(encoded, `"uid"`, `"UID"`, 1), "not as trimtab writes it"},
		"field twice":      {"which one holds?", strings.Replace(encoded, `"inc":1`, `"inc":1,"inc":2`, 1), "not as trimtab writes it"},
		"huge":             {"", strings.Replace(encoded, "orders", strings.Repeat("x", 5000), 1), "longer than"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			r, err := parseRecord(test.value)
			if err == nil {
				t.Fatalf("%s: taken for %+v", test.why, r)
			}
			if !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "trimtab.dev/external") {
				t.Errorf("%s: %v, want %q in it", test.why, err, test.says)
			}
		})
	}
}

// FuzzRecord wants that whatever is read is what would be written, to the letter.
func FuzzRecord(f *testing.F) {
	f.Add(encoded)
	f.Add(`{"inc":1,"uid":"u","create":{"at":"2026-01-05T10:11:12Z","by":"p"},"done":"2026-01-05T10:11:12Z","adopted":"unmarked"}`)
	f.Add(`{"inc":1e0,"uid":"\u0075","create":{"at":"2026-01-05T10:11:12+00:00","by":"p"}}`)
	f.Fuzz(func(t *testing.T, value string) {
		r, err := parseRecord(value)
		if err != nil || value == "" {
			return
		}
		if again, err := r.encode(); err != nil || again != value {
			t.Errorf("%q was read and is written as %q (%v)", value, again, err)
		}
	})
}

func TestMarks(t *testing.T) {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u1"}}
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Stream"}
	ours := markFor(obj, kind, "c1", 2)
	want := Mark{MarkCluster: "c1", MarkUID: "u1", MarkKind: "Stream.example.org", MarkNamespace: "shop", MarkName: "orders", MarkIncarnation: "2"}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("mark (-want +got):\n%s", diff)
	}
	tags := map[string]string{"team": "sales"}
	marked := ours.On(tags)
	if len(tags) != 1 || len(marked) != 7 {
		t.Errorf("tags %v, marked %v", tags, marked)
	}
	if diff := cmp.Diff(ours, MarkOf(marked)); diff != "" {
		t.Errorf("mark found again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tags, Unmark(marked)); diff != "" {
		t.Errorf("without mark (-want +got):\n%s", diff)
	}
	if MarkOf(tags) != nil || Unmark(nil) != nil {
		t.Error("a mark out of nothing")
	}
}

func TestOwner(t *testing.T) {
	mark := func(uid, name string) Mark {
		return Mark{MarkUID: uid, MarkKind: "Stream.example.org", MarkNamespace: "shop", MarkName: name, MarkCluster: "c1"}
	}
	in := func(cluster string, m Mark) Mark {
		if m[MarkCluster] = cluster; cluster == "" {
			delete(m, MarkCluster)
		}
		return m
	}
	adopted := func(from string) record { r := aRecord(); r.Adopted = from; return r }
	left := func(uid string) record { r := aRecord(); r.UID = uid; return r }
	type asks = claimant
	tests := map[string]struct {
		why   string
		asks  asks
		found Mark
		want  Owner
	}{
		"our mark":                     {"", asks{record: aRecord()}, mark("u1", "orders"), OwnerUs},
		"our mark, no record":          {"", asks{}, mark("u1", "orders"), OwnerUs},
		"our mark, of before":          {"marks did not always name a cluster", asks{record: aRecord()}, in("", mark("u1", "orders")), OwnerUs},
		"no mark":                      {"", asks{record: aRecord()}, nil, OwnerNobody},
		"another object":               {"", asks{record: aRecord()}, mark("u2", "other"), OwnerOther},
		"an earlier object":            {"there is one object of a name at a time", asks{record: aRecord()}, mark("u2", "orders"), OwnerNamesake},
		"another cluster":              {"its object may live", asks{record: aRecord()}, in("c2", mark("u2", "orders")), OwnerForeign},
		"no cluster":                   {"nobody knows which", asks{record: aRecord()}, in("", mark("u2", "orders")), OwnerForeign},
		"another cluster, vouched":     {"a record proves nothing about others", asks{inherited: left("u2")}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another cluster, adopted":     {"forged", asks{record: adopted("u2"), adoption: AdoptAlways}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another cluster, stated":      {"a cluster that died", asks{from: "u2"}, in("c2", mark("u2", "orders")), OwnerStated},
		"another one than stated":      {"", asks{from: "u3"}, in("c2", mark("u2", "orders")), OwnerForeign},
		"another object, stated":       {"one that was deleted by force", asks{from: "u2"}, mark("u2", "other"), OwnerStated},
		"stated and taken over":        {"", asks{record: adopted("u2"), from: "u2"}, in("c2", mark("u2", "orders")), OwnerRecorded},
		"restored":                     {"the record came with the backup", asks{inherited: left("u0"), adoption: AdoptIfMarked}, mark("u0", "orders"), OwnerRestored},
		"copied":                       {"the record came from another object", asks{inherited: left("u0")}, mark("u0", "other"), OwnerOther},
		"adopted unmarked":             {"", asks{record: adopted(adoptedUnmarked), adoption: AdoptIfIdentical}, nil, OwnerRecorded},
		"adopted, not allowed":         {"a record gives what policy would give", asks{record: adopted(adoptedUnmarked), adoption: AdoptIfMarked}, nil, OwnerNobody},
		"adopted an earlier one's":     {"", asks{record: adopted("u2"), adoption: AdoptIfMarked}, mark("u2", "orders"), OwnerRecorded},
		"adopted, another object's":    {"forged", asks{record: adopted("u2"), adoption: AdoptAlways}, mark("u2", "other"), OwnerOther},
		"another than was adopted":     {"", asks{record: adopted("u2"), adoption: AdoptIfMarked}, mark("u3", "orders"), OwnerNamesake},
		"adopted, now another's":       {"", asks{record: adopted(adoptedUnmarked), adoption: AdoptAlways}, mark("u2", "other"), OwnerOther},
		"no marks, created":            {"", asks{record: aRecord(), unmarked: true}, nil, OwnerRecorded},
		"no marks, never created":      {"it was there before", asks{record: aRecord(), unmarked: true, untried: true}, nil, OwnerNobody},
		"no marks, no record":          {"it was there before", asks{unmarked: true, untried: true}, nil, OwnerNobody},
		"no marks, record inherits":    {"a copy vouches for nothing", asks{inherited: left("u0"), unmarked: true}, nil, OwnerNobody},
		"no marks, adopted":            {"", asks{record: adopted(adoptedUnmarked), unmarked: true, adoption: AdoptAlways}, nil, OwnerRecorded},
		"no marks, adopted by forgery": {"", asks{record: adopted(adoptedUnmarked), unmarked: true, adoption: AdoptIfMarked}, nil, OwnerNobody},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			c := test.asks
			c.mark = mark("u1", "orders")
			if got := c.ownerOf(test.found); got != test.want {
				t.Errorf("%s: owner %d, want %d", test.why, got, test.want)
			}
		})
	}
}

func TestStanding(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	s := standing{uid: "b", since: at(5)}
	tests := map[string]struct {
		why  string
		s, o standing
		want Rival
	}{
		"an older wish":          {"", s, standing{uid: "c", since: at(4)}, RivalHolds},
		"a younger wish":         {"", s, standing{uid: "a", since: at(6)}, RivalNone},
		"of the same second":     {"whose record is there was worked on first", s, standing{uid: "c", since: at(5), asked: at(6)}, RivalHolds},
		"the younger has it":     {"a record before a wish", s, standing{uid: "c", since: at(6), holds: true}, RivalHolds},
		"two records":            {"nothing proves either", standing{uid: "b", holds: true}, standing{uid: "c", holds: true}, RivalEqual},
		"two records that go":    {"one deletes", standing{uid: "b", holds: true, ends: true}, standing{uid: "c", holds: true, ends: true}, RivalNone},
		"the other leaves it":    {"it is to stay", standing{uid: "b", holds: true, ends: true}, standing{uid: "c", holds: true, ends: true, leaves: true}, RivalEqual},
		"at another endpoint":    {"", standing{uid: "b", place: place{Endpoint: "x"}}, standing{uid: "a", holds: true, place: place{Endpoint: "y"}}, RivalNone},
		"an endpoint unknown":    {"counts as the same", standing{uid: "b", place: place{Endpoint: "x"}}, standing{uid: "a", holds: true}, RivalHolds},
		"another's installation": {"endpoints are not told apart", standing{uid: "b", place: place{Installation: "x"}}, standing{uid: "a", holds: true, place: place{Installation: "y"}}, RivalNone},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := test.s.against(test.o); got != test.want {
				t.Errorf("%s: %d, want %d", test.why, got, test.want)
			}
		})
	}
}

// TestRivalry: who makes what is not there.
func TestRivalry(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	tests := map[string]struct {
		why          string
		ours, theirs standing
		unmarked     bool
		want         Rival
	}{
		"a record, an older wish":  {"it had the thing", standing{uid: "b", since: at(5), asked: at(6), holds: true}, standing{uid: "a", since: at(4)}, false, RivalNone},
		"a wish, a younger record": {"the other had the thing", standing{uid: "a", since: at(4)}, standing{uid: "b", since: at(5), asked: at(6), holds: true}, false, RivalHolds},
		"two records":              {"the earlier one", standing{uid: "b", since: at(5), asked: at(6), holds: true}, standing{uid: "a", since: at(4), asked: at(7), holds: true}, false, RivalNone},
		"two records, one seen":    {"it was there", standing{uid: "b", asked: at(6), holds: true}, standing{uid: "a", asked: at(7), holds: true, had: true}, false, RivalHolds},
		"two records, no marks":    {"one of them is not true", standing{uid: "b", asked: at(6), holds: true}, standing{uid: "a", asked: at(7), holds: true}, true, RivalEqual},
		"two wishes":               {"the older", standing{uid: "b", since: at(5)}, standing{uid: "a", since: at(4)}, true, RivalHolds},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := rivalry(test.ours, test.theirs, !test.unmarked); got != test.want {
				t.Errorf("%s: %d, want %d", test.why, got, test.want)
			}
		})
	}
}
