package fingerprint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

// live returns an object whose fields `us` applied.
func live(t testing.TB, fields, content string, more ...string) map[string]any {
	t.Helper()
	entries := append([]string{entry("us", "Apply", "2026-01-02T03:04:05Z", fields)}, more...)
	return decode(t, fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Any","metadata":{"name":"web","managedFields":[%s]},"spec":%s}`, strings.Join(entries, ","), content))
}

func entry(manager, operation, written, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":%q,"apiVersion":"v1","time":%q,"fieldsType":"FieldsV1","fieldsV1":{"f:spec":%s}}`,
		manager, operation, written, fields)
}

func applied(t testing.TB, object map[string]any) fingerprint.Print {
	t.Helper()
	p, ok := fingerprint.Of(object, "us", metav1.ManagedFieldsOperationApply)
	if !ok {
		t.Fatal("no entry found")
	}
	return p
}

func TestValues(t *testing.T) {
	items := `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:v":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:v":{}}}}`
	numbers := `{"f:list":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:v":{}},"k:{\"port\":443,\"protocol\":\"TCP\"}":{"f:v":{}}}}`
	escaped := `{"f:list":{"k:{\"name\":\"a\u003cb\"}":{"f:v":{}},"k:{\"name\":\"ü\"}":{"f:v":{}}}}`
	doubled := `{"f:list":{"k:{\"name\":\"a\u003cb\"}":{"f:v":{}},"k:{\"name\":\"p\"}":{"f:v":{}}}}`
	partial := `{"f:list":{"k:{\"name\":\"a\"}":{"f:v":{}},"k:{\"name\":\"a\",\"zone\":1}":{"f:v":{}}}}`
	values := `{"f:set":{"v:\"a\"":{},"v:1":{}}}`
	theirs := entry("them", "Update", "2026-01-02T03:04:05Z", `{"f:empty":{"f:x":{}}}`)
	for name, test := range map[string]struct {
		why, fields, before, after string
		more                       []string
		same                       bool
	}{
		"an unowned field":          {"it is not ours", `{"f:a":{}}`, `{"a":1}`, `{"a":1,"b":2}`, nil, true},
		"an owned field":            {"it is ours", `{"f:a":{}}`, `{"a":1}`, `{"a":2}`, nil, false},
		"a deleted field":           {"it is ours", `{"f:a":{}}`, `{"a":1}`, `{}`, nil, false},
		"null for nothing":          {"they are different values", `{"f:a":{}}`, `{"a":null}`, `{}`, nil, false},
		"text for a number":         {"they are different values", `{"f:a":{}}`, `{"a":1}`, `{"a":"1"}`, nil, false},
		"a float for an integer":    {"7.0 is 7", `{"f:a":{}}`, `{"a":7}`, `{"a":7.0}`, nil, true},
		"another fraction":          {"they differ", `{"f:a":{}}`, `{"a":7.5}`, `{"a":7.25}`, nil, false},
		"a value moves":             {"lengths are part of what is hashed", `{"f:a":{},"f:b":{}}`, `{"a":"xy","b":""}`, `{"a":"x","b":"y"}`, nil, false},
		"map for scalar":            {"a value of ours is gone", `{"f:a":{".":{},"f:b":{}}}`, `{"a":{"b":1}}`, `{"a":1}`, nil, false},
		"list for map":              {"a value of ours is gone", `{"f:a":{".":{},"f:b":{}}}`, `{"a":{"b":1}}`, `{"a":["b"]}`, nil, false},
		"a key of a whole map":      {"it is one value", `{"f:a":{}}`, `{"a":{"b":1}}`, `{"a":{"b":1,"c":1}}`, nil, false},
		"a key in our empty map":    {"another owns the key", `{"f:empty":{}}`, `{"empty":{}}`, `{"empty":{"x":1}}`, []string{theirs}, true},
		"our empty map is gone":     {"the map itself is ours", `{"f:empty":{}}`, `{"empty":{}}`, `{}`, []string{theirs}, false},
		"a key nobody owns":         {"it may be one value", `{"f:empty":{}}`, `{"empty":{}}`, `{"empty":{"y":1}}`, nil, false},
		"an item of others":         {"it is not ours", items, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"x"},{"name":"a"},{"name":"y"},{"name":"b"}]}`, nil, true},
		"items change places":       {"order has a meaning", items, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"b"},{"name":"a"}]}`, nil, false},
		"an item is gone":           {"it is ours", items, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"}]}`, nil, false},
		"an item is doubled":        {"only one of them is ours", items, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"},{"name":"b"},{"name":"a","v":1}]}`, nil, false},
		"one doubled, one gone":     {"the counts agree", items, `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"},{"name":"a"}]}`, nil, false},
		"a field of an item":        {"it is ours", items, `{"list":[{"name":"a","v":1},{"name":"b"}]}`, `{"list":[{"name":"a","v":2},{"name":"b"}]}`, nil, false},
		"other fields of an item":   {"they are not ours", items, `{"list":[{"name":"a","v":1},{"name":"b"}]}`, `{"list":[{"name":"a","v":1,"w":1},{"name":"b"}]}`, nil, true},
		"a number as key":           {"the item is found", numbers, `{"list":[{"port":80,"protocol":"TCP","v":1},{"port":443,"protocol":"TCP"}]}`, `{"list":[{"port":80,"protocol":"TCP","v":2},{"port":443,"protocol":"TCP"}]}`, nil, false},
		"a key with escapes":        {"the item is found", escaped, `{"list":[{"name":"a<b","v":1},{"name":"ü"}]}`, `{"list":[{"name":"a<b","v":2},{"name":"ü"}]}`, nil, false},
		"doubled beside an escape":  {"the item is found", doubled, `{"list":[{"name":"p"},{"name":"p"},{"name":"a<b","v":1}]}`, `{"list":[{"name":"p"},{"name":"p"},{"name":"a<b","v":2}]}`, nil, false},
		"a key beyond ASCII":        {"the item is found", escaped, `{"list":[{"name":"ü","v":1}]}`, `{"list":[{"name":"ü","v":2}]}`, nil, false},
		"a key with fewer fields":   {"the item is found", partial, `{"list":[{"name":"a","v":1},{"name":"a","zone":1}]}`, `{"list":[{"name":"a","v":2},{"name":"a","zone":1}]}`, nil, false},
		"the longer key of the two": {"the item is found", partial, `{"list":[{"name":"a"},{"name":"a","zone":1,"v":1}]}`, `{"list":[{"name":"a"},{"name":"a","zone":1,"v":2}]}`, nil, false},
		"a value joins a set":       {"it is not ours", values, `{"set":["a",1]}`, `{"set":["b","a",1]}`, nil, true},
		"a set in another order":    {"order has no meaning", values, `{"set":["a",1]}`, `{"set":[1,"a"]}`, nil, true},
		"a value leaves a set":      {"it is ours", values, `{"set":["a",1]}`, `{"set":["a"]}`, nil, false},
		"an item by index":          {"it is ours", `{"f:list":{"i:1":{}}}`, `{"list":[1,2]}`, `{"list":[1,3]}`, nil, false},
		"another item by index":     {"it is not ours", `{"f:list":{"i:1":{}}}`, `{"list":[1,2]}`, `{"list":[0,2]}`, nil, true},
		"long text":                 {"its end counts", `{"f:a":{}}`, `{"a":"` + strings.Repeat("x", 9000) + `"}`, `{"a":"` + strings.Repeat("x", 8999) + `y"}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := applied(t, live(t, test.fields, test.before)), applied(t, live(t, test.fields, test.after, test.more...))
			if same := before.Values == after.Values; same != test.same {
				t.Errorf("values are the same: %v, want %v: %s", same, test.same, test.why)
			}
			if before.Owned != after.Owned {
				t.Error("the owned fields are the same, their hashes differ")
			}
		})
	}
}

func TestOwned(t *testing.T) {
	base := entry("us", "Apply", "2026-01-02T03:04:05Z", `{"f:list":{"k:{\"port\":80}":{"f:v":{}},"k:{\"port\":443}":{".":{},"f:v":{}}}}`)
	for name, test := range map[string]struct {
		why, entry string
		same       bool
	}{
		"another order": {
			"clients order numbers in different ways",
			entry("us", "Apply", "2026-01-02T03:04:05Z", `{"f:list":{"k:{\"port\":443}":{"f:v":{},".":{}},"k:{\"port\":80}":{"f:v":{}}}}`), true,
		},
		"spaces":       {"they have no meaning", strings.ReplaceAll(base, "{}", "{\n }"), true},
		"other escape": {"they are the same text", strings.ReplaceAll(base, `k:`, `\u006b:`), true},
		"another time": {"we wrote again, and the values tell whether they are ours", strings.Replace(base, "2026", "2027", 1), true},
		"no time":      {"an entry may have none", strings.Replace(base, `"time":"2026-01-02T03:04:05Z",`, "", 1), true},
		"version":      {"fields have other names there", strings.Replace(base, `"apiVersion":"v1"`, `"apiVersion":"v2"`, 1), false},
		"fewer fields": {"a field was lost", strings.Replace(base, `".":{},`, "", 1), false},
		"field moved":  {"it belongs to another item", strings.Replace(strings.Replace(base, `".":{},`, "", 1), `80}":{`, `80}":{".":{},`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := both(t, base).Owned == both(t, test.entry).Owned; same != test.same {
				t.Errorf("the same: %v, want %v: %s", same, test.same, test.why)
			}
		})
	}
}

// both returns the print, after checking that metadata alone gives the same hash.
func both(t *testing.T, text string) fingerprint.Print {
	t.Helper()
	text = fmt.Sprintf(`{"apiVersion":"v1","kind":"Any","metadata":{"managedFields":[%s,%s]}}`,
		`{"manager":"us","operation":"Apply","subresource":"status","fieldsV1":{"f:status":{}}}`, text)
	p := applied(t, decode(t, text))
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	if owned, ok := fingerprint.OfMetadata(&m, "us", metav1.ManagedFieldsOperationApply); !ok || owned != p.Owned {
		t.Errorf("from metadata %v, %v; from the object %v", owned, ok, p.Owned)
	}
	return p
}

func TestNoEntry(t *testing.T) {
	object := live(t, `{"f:a":{}}`, `{"a":1}`)
	if _, ok := fingerprint.Of(object, "them", metav1.ManagedFieldsOperationApply); ok {
		t.Error("found an entry of a manager that has none")
	}
	if _, ok := fingerprint.Of(object, "us", metav1.ManagedFieldsOperationUpdate); ok {
		t.Error("found an entry of another operation")
	}
	for _, odd := range []map[string]any{nil, {"metadata": "x"}, {"metadata": map[string]any{"managedFields": []any{1}}}} {
		if _, ok := fingerprint.Of(odd, "us", metav1.ManagedFieldsOperationApply); ok {
			t.Errorf("found an entry in %v", odd)
		}
	}
}

// TestFormat keeps what is hashed: stored fingerprints must stay valid.
func TestFormat(t *testing.T) {
	object := live(t, `{"f:a":{},"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:set":{"v:\"a\"":{}}}`,
		`{"a":{"b":[1,2.5,true,null,"x"]},"list":[{"name":"a"}],"set":["a"]}`)
	p := applied(t, object)
	if want := "inVOWHur7WobZoX9ej80-k"; p.String() != want {
		t.Errorf("fingerprint is %s, want %s", p, want)
	}
	if got, err := fingerprint.Parse(p.String()); err != nil || got != p {
		t.Errorf("Parse(%q) = %v, %v", p, got, err)
	}
	for _, odd := range []string{"", p.String()[1:], "!" + p.String()[1:]} {
		if _, err := fingerprint.Parse(odd); err == nil {
			t.Errorf("Parse(%q) gives no error", odd)
		}
	}
}

func TestSecretsDoNotConfirmGuesses(t *testing.T) {
	object := decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"managedFields":[
		{"manager":"us","operation":"Apply","fieldsV1":{"f:data":{"f:a":{}}}}]},"data":{"a":"b25l"}}`)
	p := applied(t, object)
	if got := p.Values[2:]; !slices.Equal(got, []byte{0, 0, 0, 0, 0, 1}) {
		t.Errorf("more than 16 bits of the hash are kept: %v", got)
	}
	if h := fingerprint.OfManifest(object, object); !slices.Equal(h[2:], p.Values[2:]) {
		t.Errorf("more than 16 bits of the hash are kept: %v", h)
	}
}

func TestDiffAndManagers(t *testing.T) {
	for name, test := range map[string]struct {
		why, manifest, live string
		want                []string
	}{
		"equal":              {"nothing differs", `{"a":1,"b":{"c":[1]}}`, `{"a":1,"b":{"c":[1],"d":1},"e":1}`, nil},
		"fields":             {"in the order of names", `{"b":1,"a.b/c":1,"c":{"d":1}}`, `{"c":{"d":2}}`, []string{"spec[a.b/c]", "spec.b", "spec.c.d"}},
		"what servers drop":  {"it is the same as nothing", `{"a":0,"b":"","c":false,"d":null,"e":[],"labels":{}}`, `{"x":1}`, nil},
		"emptyDir":           {"an empty map can have a meaning", `{"emptyDir":{}}`, `{"x":1}`, []string{"spec.emptyDir"}},
		"an item":            {"it is found by name", `{"list":[{"name":"a","v":1},{"name":"b"}]}`, `{"list":[{"name":"x"},{"name":"a","v":2}]}`, []string{"spec.list[name=a].v", "spec.list[name=b]"}},
		"order":              {"it has a meaning", `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"b"},{"name":"x"},{"name":"a"}]}`, []string{"spec.list"}},
		"an item is doubled": {"it is shown as order", `{"list":[{"name":"a"},{"name":"b"}]}`, `{"list":[{"name":"a"},{"name":"b"},{"name":"a"}]}`, []string{"spec.list"}},
		"a default in a key": {"it is found without", `{"list":[{"containerPort":80,"v":1}]}`, `{"list":[{"containerPort":80,"protocol":"TCP","v":2}]}`, []string{"spec.list[containerPort=80].v"}},
		"a whole list":       {"defaults in it are none of ours", `{"list":[{"x":1},{"x":1}]}`, `{"list":[{"x":1,"y":1},{"x":1}]}`, nil},
		"a longer list":      {"it is one value", `{"list":["a"]}`, `{"list":["a","b"]}`, []string{"spec.list"}},
		"a selector":         {"it is one value", `{"selector":{"a":"1"}}`, `{"selector":{"a":"1","b":"1"}}`, []string{"spec.selector"}},
		"finalizers":         {"they are a set", `{"finalizers":["a","b"]}`, `{"finalizers":["c","b"]}`, []string{`spec.finalizers["a"]`}},
	} {
		t.Run(name, func(t *testing.T) {
			paths, _ := fingerprint.Diff(map[string]any{"spec": decode(t, kinded(test.manifest))}, map[string]any{"spec": decode(t, kinded(test.live))}, 0)
			var got []string
			for _, p := range paths {
				got = append(got, p.String())
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, d)
			}
		})
	}
}

// kinded adds a kind, without which unstructured objects are not decoded.
func kinded(object string) string {
	return `{"kind":"Any",` + strings.TrimPrefix(object, "{")
}

func TestManagers(t *testing.T) {
	object := live(t, `{"f:a":{},"f:whole":{}}`, `{"a":1,"list":[{"name":"a","image":"2"}],"whole":{"x":1}}`,
		entry("them", "Update", "2026-01-02T03:04:05Z", `{"f:list":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}`),
		entry("helm", "Update", "2026-01-02T03:04:05Z", `{"f:a":{},"f:list":{"k:{\"name\":\"b\"}":{".":{},"f:image":{}}}}`))
	manifest := map[string]any{"spec": map[string]any{
		"a": int64(2), "list": []any{map[string]any{"name": "a", "image": "1"}}, "gone": "x",
	}}
	paths, more := fingerprint.Diff(manifest, object, 2)
	if len(paths) != 2 || more != 1 {
		t.Fatalf("got %d paths and %d more, want 2 and 1", len(paths), more)
	}
	paths, _ = fingerprint.Diff(manifest, object, 0)
	paths = append(paths, fingerprint.Path{"f:spec", "f:whole", "f:x"})
	var got []string
	for _, w := range fingerprint.Managers(object, paths) {
		got = append(got, fmt.Sprintf("%s %s %v", w.Manager, w.Operation, w.Paths))
	}
	want := []string{"helm Update [spec.a]", "them Update [spec.list[name=a].image]", "us Apply [spec.a spec.whole]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPathsStayApart(t *testing.T) {
	manifest := map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{"d": int64(1), "e": int64(1), "f": int64(1)}}}}
	paths, _ := fingerprint.Diff(manifest, map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{}}}}, 0)
	if got, want := fmt.Sprint(paths), "[a.b.c.d a.b.c.e a.b.c.f]"; got != want {
		t.Errorf("paths are %s, want %s", got, want)
	}
}

// benchmarked is a Deployment with two containers of twelve variables each, as the API server
// answered it when it was applied.
func benchmarked(b *testing.B) []byte {
	b.Helper()
	data, err := os.ReadFile("testdata/deployment.json")
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func BenchmarkOf(b *testing.B) {
	object := decode(b, string(benchmarked(b)))
	b.ReportAllocs()
	for b.Loop() {
		fingerprint.Of(object, "us", metav1.ManagedFieldsOperationApply)
	}
}

func BenchmarkOfMetadata(b *testing.B) {
	var m metav1.PartialObjectMetadata
	if err := json.Unmarshal(benchmarked(b), &m); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		fingerprint.OfMetadata(&m, "us", metav1.ManagedFieldsOperationApply)
	}
}

func BenchmarkOfManifest(b *testing.B) {
	object := decode(b, string(benchmarked(b)))
	manifest := map[string]any{"metadata": map[string]any{}, "spec": object["spec"]}
	b.ReportAllocs()
	for b.Loop() {
		fingerprint.OfManifest(object, manifest)
	}
}
