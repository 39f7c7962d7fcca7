package loop

import (
	"encoding/json"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Piece is embedded, so that the API shows its fields as those of the object.
type Piece struct {
	Data []string `json:"data,omitempty"`
}

type whole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Piece             `json:",inline"`
	Part              Piece `json:"part"`
	Status            Piece `json:"status,omitzero"`
	private           int
}

func (w *whole) DeepCopyObject() runtime.Object { c := *w; return &c }

// inner is embedded without being exported, so that its fields cannot be compared.
type inner struct {
	Data []string `json:"data,omitempty"`
}

type opaque struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	inner             `json:",inline"`
}

func (o *opaque) DeepCopyObject() runtime.Object { c := *o; return &c }

// TestFields: what differs to the API is found, whether Go values are compared or converted, and
// what differs in Go alone is no difference.
func TestFields(t *testing.T) {
	full := func(change func(*whole)) *whole {
		w := &whole{Part: Piece{Data: []string{"a"}}, Status: Piece{Data: []string{"b"}}}
		change(w)
		return w
	}
	for _, test := range []struct {
		name         string
		other        *whole
		spec, status bool // changed
	}{
		{"the same", full(func(*whole) {}), false, false},
		{"another name", full(func(w *whole) { w.Name = "b" }), false, false},
		{"another version of the type", full(func(w *whole) { w.APIVersion = "v2" }), false, false},
		{"what no API shows", full(func(w *whole) { w.private = 1 }), false, false},
		{"another embedded field", full(func(w *whole) { w.Data = []string{"x"} }), true, false},
		{"another spec", full(func(w *whole) { w.Part.Data[0] = "x" }), true, false},
		{"none and an empty list in spec", full(func(w *whole) { w.Data = []string{} }), false, false},
		{"another status", full(func(w *whole) { w.Status.Data[0] = "x" }), false, true},
		{"no status", full(func(w *whole) { w.Status = Piece{} }), false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			for way, f := range map[string]fields{"compared": fieldsOf(reflect.TypeFor[*whole]()), "converted": {}} {
				if way == "converted" && test.other.private != 0 { // the converter shows what JSON does not
					continue
				}
				before := full(func(*whole) {})
				if got, err := f.specChanged(before, test.other); err != nil || got != test.spec {
					t.Errorf("%s: specChanged = %v, %v", way, got, err)
				}
				if got := f.sameStatus(before, test.other); got == test.status {
					t.Errorf("%s: sameStatus = %v", way, got)
				}
			}
		})
	}
	t.Run("none and an empty list are the same status", func(t *testing.T) {
		if f := fieldsOf(reflect.TypeFor[*whole]()); !f.sameStatus(&whole{}, &whole{Status: Piece{Data: []string{}}}) {
			t.Error("they differ")
		}
	})
	t.Run("a type whose fields cannot be compared is converted", func(t *testing.T) {
		f := fieldsOf(reflect.TypeFor[*opaque]())
		if changed, err := f.specChanged(&opaque{}, &opaque{inner: inner{Data: []string{"x"}}}); err != nil || !changed {
			t.Errorf("specChanged = %v, %v", changed, err)
		}
	})
	t.Run("an object without a Go type is converted", func(t *testing.T) {
		f := fieldsOf(reflect.TypeFor[*unstructured.Unstructured]())
		of := func(spec, status string) client.Object {
			return &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{"note": status}}}
		}
		if changed, err := f.specChanged(of("a", "b"), of("a", "c")); err != nil || changed {
			t.Errorf("another status: specChanged = %v, %v", changed, err)
		}
		if changed, err := f.specChanged(of("a", "b"), of("c", "b")); err != nil || !changed {
			t.Errorf("another spec: specChanged = %v, %v", changed, err)
		}
		if f.sameStatus(of("a", "b"), of("a", "c")) || !f.sameStatus(of("a", "b"), of("c", "b")) {
			t.Error("sameStatus does not compare the status")
		}
	})
}

// TestMarshalStatus: what is written is what is compared, also where texts are not valid UTF-8.
func TestMarshalStatus(t *testing.T) {
	for name, data := range map[string][]string{
		"none": nil, "empty": {}, "plain": {"a", "<&>", "caf\u00e9"}, "replaced by somebody": {"\uFFFD"},
		"invalid": {"a\xff\xfeb"}, "looks replaced": {`\ufffd`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &whole{Status: Piece{Data: data}}
			for way, f := range map[string]fields{"encoded": fieldsOf(reflect.TypeFor[*whole]()), "converted": {}} {
				encoded, err := f.marshalStatus(w, func(status any) ([]byte, error) { return json.Marshal(status) })
				if err != nil {
					t.Fatal(err)
				}
				var server whole
				if err := json.Unmarshal(encoded, &server.Status); err != nil {
					t.Fatal(err)
				}
				if !f.sameStatus(&server, w) {
					t.Errorf("%s: %s is not as desired", way, encoded)
				}
			}
		})
	}
}

// TestAppliedAlone: leftovers are looked for unless one apply wrote all of the status.
func TestAppliedAlone(t *testing.T) {
	entry := func(manager string, op metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: op, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	const status, spec = `{"f:status":{"f:note":{}}}`, `{"f:spec":{"f:size":{}}}`
	for name, test := range map[string]struct {
		managed []metav1.ManagedFieldsEntry
		want    bool
	}{
		"nothing is known":             {nil, false},
		"an entry without fields":      {[]metav1.ManagedFieldsEntry{{Manager: "us", Operation: apply}}, false},
		"we alone":                     {[]metav1.ManagedFieldsEntry{entry("us", apply, status)}, true},
		"another wrote the spec":       {[]metav1.ManagedFieldsEntry{entry("them", update, spec), entry("us", apply, status)}, true},
		"another wrote status too":     {[]metav1.ManagedFieldsEntry{entry("us", apply, status), entry("them", update, status)}, false},
		"another applied status too":   {[]metav1.ManagedFieldsEntry{entry("them", apply, status), entry("us", apply, status)}, false},
		"we did not always apply":      {[]metav1.ManagedFieldsEntry{entry("us", apply, status), entry("us", update, status)}, false},
		"we wrote no status as of now": {[]metav1.ManagedFieldsEntry{entry("us", apply, spec)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := appliedAlone(test.managed, "us"); got != test.want {
				t.Errorf("appliedAlone = %v", got)
			}
		})
	}
}
