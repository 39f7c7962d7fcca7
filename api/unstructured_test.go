package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/trimtab-dev/trimtab/api"
)

// everything has all kinds of JSON values.
type everything struct {
	Text     string               `json:"text"`
	Empty    string               `json:"empty,omitempty"`
	Yes      bool                 `json:"yes"`
	Large    int64                `json:"large"`
	Small    float64              `json:"small"`
	Null     *int                 `json:"null"`
	List     []string             `json:"list"`
	Objects  []everythingItem     `json:"objects"`
	Map      map[string][]int32   `json:"map"`
	Raw      runtime.RawExtension `json:"raw"`
	Duration metav1.Duration      `json:"duration"`
	Any      any                  `json:"any"`

	everythingItem `json:",inline"`
}

type everythingItem struct {
	Inner map[string]any `json:"inner"`
}

// ToUnstructured implements component.Unstructurable.
func (e *everything) ToUnstructured() map[string]any { return api.ToUnstructured(e) }

func TestToUnstructured(t *testing.T) {
	fresh := func() *everything {
		return &everything{
			Text: "a <b> \u00e9", Yes: true, Large: math.MaxInt64, Small: 0.1, List: []string{"x"},
			Objects: []everythingItem{{Inner: map[string]any{"a": map[string]any{"b": []any{"c", nil}}}}},
			Map:     map[string][]int32{"m": {1, 2}}, Raw: runtime.RawExtension{Raw: []byte(`{"r":{"s":1.5}}`)},
			Any: []any{true, "t", nil, map[string]any{}}, everythingItem: everythingItem{Inner: map[string]any{"i": "j"}},
		}
	}
	t.Run("004-05 ToUnstructured is JSON there and back", func(t *testing.T) {
		spec := fresh()
		data, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := utiljson.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		got := spec.ToUnstructured()
		if diff := cmp.Diff(want, got); diff != "" || got["large"] != int64(math.MaxInt64) {
			t.Errorf("large is %v (-want +got):\n%s", got["large"], diff)
		}
		spoil(got)
		if diff := cmp.Diff(fresh(), spec, cmp.AllowUnexported(everything{})); diff != "" {
			t.Errorf("a change of the result changed the spec (-want +got):\n%s", diff)
		}
	})
	t.Run("what is not an object", func(t *testing.T) {
		for _, v := range []any{"text", []int{1}, map[string]any{"f": func() {}}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v: no panic", v)
					}
				}()
				t.Errorf("%v: %s", v, fmt.Sprint(api.ToUnstructured(v)))
			}()
		}
	})
}

// spoil changes everything in a value.
func spoil(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			spoil(value)
			v[key] = "spoilt"
		}
		v["more"] = true
	case []any:
		for i, value := range v {
			spoil(value)
			v[i] = "spoilt"
		}
	}
}
