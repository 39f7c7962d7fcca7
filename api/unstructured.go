package api

import (
	"encoding/json"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Unstructurable is a value that JSON knows as an object. Specs of components are.
type Unstructurable interface {
	// ToUnstructured returns the value as JSON knows it. Changes to the result do not change the
	// value.
	ToUnstructured() map[string]any
}

// ToUnstructured returns a value as JSON knows it: maps, lists, strings, booleans, and numbers as int64 or
// float64. The result shares nothing with the value. It is for the method ToUnstructured of specs:
//
//	func (s *ShopSpec) ToUnstructured() map[string]any { return api.ToUnstructured(s) }
//
// It panics if the value is no JSON object, which the type of a spec always is.
func ToUnstructured(v any) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("api: ToUnstructured of %T: %v; every field of a spec must be written as JSON", v, err))
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		panic(fmt.Sprintf("api: ToUnstructured of %T, which is not a JSON object: %v; pass a struct or a map", v, err))
	}
	return out
}
