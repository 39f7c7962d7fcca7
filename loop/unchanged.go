package loop

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Converting an object to what the API sees costs far more than comparing Go values, and nearly all
// passes change nothing. So equal values are recognised first. Values that differ may still be the
// same to the API, as an empty list and none are, and are converted to find out.

// sameBesides tells that two objects have equal values in all fields but their type, metadata and
// status. False means that it is not known.
func sameBesides(a, b client.Object) bool {
	return equalFields(a, b, func(name string) bool { return name != "metadata" && name != "status" })
}

// sameStatus tells that two objects have equal values in their field status. False means that it
// is not known.
func sameStatus(a, b client.Object) bool {
	return equalFields(a, b, func(name string) bool { return name == "status" })
}

// equalFields compares those fields of two structs that the API shows under a name which is asked for.
func equalFields(a, b client.Object, asked func(name string) bool) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Type() != y.Type() || x.Kind() != reflect.Pointer || x.Type().Elem().Kind() != reflect.Struct {
		return false
	}
	compared := false
	x, y = x.Elem(), y.Elem()
	for i := range x.NumField() {
		field := x.Type().Field(i)
		if field.Type == reflect.TypeFor[metav1.TypeMeta]() || !field.IsExported() && !field.Anonymous || !asked(apiName(field)) {
			continue
		}
		if !field.IsExported() || !reflect.DeepEqual(x.Field(i).Addr().Interface(), y.Field(i).Addr().Interface()) {
			return false
		}
		compared = true
	}
	return compared
}

// apiName is the name by which the API shows a field.
func apiName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return or(name, field.Name)
}
