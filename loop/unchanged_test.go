package loop

import (
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
	Part              Piece   `json:"part"`
	Status            []Piece `json:"status,omitempty"`
	private           int
}

func (w *whole) DeepCopyObject() runtime.Object { c := *w; return &c }

// TestUnchanged: what is said to be equal is equal; what may differ is looked at more closely.
func TestUnchanged(t *testing.T) {
	full := func(change func(*whole)) *whole {
		w := &whole{Part: Piece{Data: []string{"a"}}, Status: []Piece{{Data: []string{"b"}}}}
		change(w)
		return w
	}
	for _, test := range []struct {
		name            string
		other           client.Object
		besides, status bool
	}{
		{"the same", full(func(*whole) {}), true, true},
		{"another name", full(func(w *whole) { w.Name = "b" }), true, true},
		{"another version of the type", full(func(w *whole) { w.APIVersion = "v2" }), true, true},
		{"what no API shows", full(func(w *whole) { w.private = 1 }), true, true},
		{"another embedded field", full(func(w *whole) { w.Data = []string{"x"} }), false, true},
		{"another spec", full(func(w *whole) { w.Part.Data[0] = "x" }), false, true},
		{"none and an empty list", full(func(w *whole) { w.Status[0].Data = []string{} }), true, false},
		{"another status", full(func(w *whole) { w.Status[0].Data[0] = "x" }), true, false},
		{"another type", &unstructured.Unstructured{}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := full(func(*whole) {})
			if got := sameBesides(before, test.other); got != test.besides {
				t.Errorf("sameBesides = %v", got)
			}
			if got := sameStatus(before, test.other); got != test.status {
				t.Errorf("sameStatus = %v", got)
			}
		})
	}
	t.Run("not a struct", func(t *testing.T) {
		u := &unstructured.Unstructured{}
		if sameStatus(u, u) {
			t.Error("an object without fields has a status")
		}
	})
}
