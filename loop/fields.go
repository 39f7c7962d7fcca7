package loop

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/conditions"
)

// Converting an object to what the API sees costs far more than comparing Go values, and nearly all
// passes change nothing. So equal values are recognised first. Values that differ may still be the
// same to the API, as an empty list and none are, and are converted to find out.

// fields are the positions of the fields of a kind's type. The zero value knows none: then objects are
// always converted.
type fields struct {
	of reflect.Type
	// status is the one that the API shows as status, -1 if there is none; spec are all others
	// but metadata and the type.
	status int
	spec   []int
	// observed is the path of status.observedGeneration, nil if there is none. The status and what is embedded in it are
	// structs and no pointers.
	observed []int
}

// fieldsOf returns the fields of a type that is a pointer to a struct. It knows none of a type that
// embeds one without exporting it.
func fieldsOf(t reflect.Type) fields {
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return fields{}
	}
	f := fields{of: t, status: -1}
	for i := range t.Elem().NumField() {
		field := t.Elem().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[metav1.TypeMeta](), or(name, field.Name) == "metadata":
		case !field.IsExported() && field.Anonymous:
			return fields{}
		case !field.IsExported():
		case or(name, field.Name) == "status":
			f.status, f.observed = i, observedIn(field)
		default:
			f.spec = append(f.spec, i)
		}
	}
	return f
}

// observedIn returns the path of observedGeneration in a status.
func observedIn(status reflect.StructField) []int {
	if status.Type.Kind() != reflect.Struct {
		return nil
	}
	for _, field := range reflect.VisibleFields(status.Type) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "observedGeneration" || field.Type.Kind() != reflect.Int64 {
			continue
		}
		for parent := range field.Index {
			if status.Type.FieldByIndex(field.Index[:parent+1]).Type.Kind() == reflect.Pointer {
				return nil
			}
		}
		return append(slices.Clone(status.Index), field.Index...)
	}
	return nil
}

// observedGeneration returns the field status.observedGeneration of obj, which has it.
func (f fields) observedGeneration(obj client.Object) *int64 {
	observed, _ := reflect.TypeAssert[*int64](reflect.ValueOf(obj).Elem().FieldByIndex(f.observed).Addr())
	return observed
}

// equal reports whether two objects have equal values in a field.
func (f fields) equal(a, b client.Object, field int) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Type() == f.of && y.Type() == f.of &&
		reflect.DeepEqual(x.Elem().Field(field).Addr().Interface(), y.Elem().Field(field).Addr().Interface())
}

// specChanged reports whether two versions of an object differ in anything but metadata and status.
func (f fields) specChanged(before, after client.Object) (bool, error) {
	same := f.of != nil
	for _, i := range f.spec {
		same = same && f.equal(before, after, i)
	}
	if same {
		return false, nil
	}
	a, err := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	if err != nil {
		return false, err
	}
	b, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	if err != nil {
		return false, err
	}
	for _, u := range []map[string]any{a, b} {
		delete(u, "metadata")
		delete(u, "status")
		delete(u, "apiVersion")
		delete(u, "kind")
	}
	return !equality.Semantic.DeepEqual(a, b), nil
}

// sameStatus reports whether two versions of an object have the same status, with conditions in
// whatever order.
func (f fields) sameStatus(a, b client.Object) bool {
	if x, ok := reporting(a); ok {
		y, _ := reporting(b)
		if !equalConditions(x.Conditions, y.Conditions, func(metav1.Condition) bool { return true }) {
			return false
		}
		theirs := y.Conditions
		y.Conditions = x.Conditions
		defer func() { y.Conditions = theirs }()
	}
	if f.of != nil && f.status >= 0 && f.equal(a, b, f.status) {
		return true
	}
	have, err := f.statusOf(a)
	if err != nil {
		return false
	}
	want, err := f.statusOf(b)
	if err != nil {
		return false
	}
	return equality.Semantic.DeepEqual(have, want)
}

// statusOf returns obj's status as the API sees it; nil if it is empty.
func (f fields) statusOf(obj client.Object) (map[string]any, error) {
	status, err := f.convertStatus(obj)
	if err != nil {
		return nil, fmt.Errorf("convert status: %w", err)
	}
	for key, value := range status {
		status[key] = valid(value)
	}
	return status, nil
}

// marshalStatus encodes obj's status as part of what encode encodes. A text that is not valid UTF-8
// becomes what statusOf says, so that what is written compares as equal.
func (f fields) marshalStatus(obj client.Object, encode func(status any) ([]byte, error)) ([]byte, error) {
	if status, ok := f.statusStruct(obj); ok {
		data, err := encode(status)
		if err != nil || !bytes.Contains(data, []byte(replaced)) {
			return data, err
		}
	}
	status, err := f.statusOf(obj)
	if err != nil {
		return nil, err
	}
	return encode(status)
}

// replaced is what package json writes for a byte that is not valid UTF-8.
const replaced = `\ufffd`

// statusStruct returns a pointer to the status of obj where it is a struct.
func (f fields) statusStruct(obj client.Object) (any, bool) {
	v := reflect.ValueOf(obj)
	if f.of == nil || v.Type() != f.of || f.status < 0 || v.Elem().Field(f.status).Kind() != reflect.Struct {
		return nil, false
	}
	return v.Elem().Field(f.status).Addr().Interface(), true
}

// convertStatus converts the status alone where it is a struct.
func (f fields) convertStatus(obj client.Object) (map[string]any, error) {
	if status, ok := f.statusStruct(obj); ok {
		return runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	status, _ := u["status"].(map[string]any)
	return status, err
}

// withStatusOf returns obj with the status of other, neither of which is used from then on.
func (f fields) withStatusOf(other, obj client.Object) (client.Object, error) {
	if v := reflect.ValueOf(obj); f.of != nil && v.Type() == f.of && f.status >= 0 {
		v.Elem().Field(f.status).Set(reflect.ValueOf(other).Elem().Field(f.status))
		return obj, nil
	}
	status, err := f.statusOf(other)
	if err != nil {
		return nil, err
	}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	if delete(u, "status"); status != nil {
		u["status"] = status
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u, obj); err != nil {
		return nil, fmt.Errorf("convert %T: %w", obj, err)
	}
	return obj, nil
}

// valid is a part of a status as the API server keeps it: bytes that are no text would never
// be as written, and be written at every pass.
func valid(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	case []any:
		for i := range v {
			v[i] = valid(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = valid(v[key])
		}
	}
	return value
}

// statusPatch is the merge patch from one status to another. With a version it is locked to that.
func statusPatch(have, want map[string]any, version string) ([]byte, error) {
	from, to := &unstructured.Unstructured{Object: map[string]any{"status": have}}, &unstructured.Unstructured{Object: map[string]any{"status": want}}
	if version == "" {
		return client.MergeFrom(from).Data(to)
	}
	from.SetResourceVersion(version)
	to.SetResourceVersion(version)
	return client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}).Data(to)
}

// equalConditions reports whether two lists have the same conditions, in any order. Conditions for
// which counts returns false are ignored.
func equalConditions(a, b []metav1.Condition, counts func(metav1.Condition) bool) bool {
	left := 0
	for _, y := range b {
		if counts(y) {
			left++
		}
	}
	for _, x := range a {
		if !counts(x) {
			continue
		}
		left--
		if y := meta.FindStatusCondition(b, x.Type); y == nil || !equalCondition(x, *y) {
			return false
		}
	}
	return left == 0
}

func equalCondition(x, y metav1.Condition) bool {
	return x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message &&
		x.ObservedGeneration == y.ObservedGeneration && x.LastTransitionTime.Equal(&y.LastTransitionTime)
}

// ownCondition reports whether the type of c is one of trimtab's own.
func ownCondition(c metav1.Condition) bool { return !conditions.Report{}.Foreign(c.Type) }
