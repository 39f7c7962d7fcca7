package fingerprint_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/component/internal/fingerprint"
)

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}

const webWithSidecar = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","managedFields":[
 {"manager":"us","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":
  {"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}}}}]},
 "spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"side","image":"s"},{"name":"web","image":"w"}]}}}}`

func TestBothFormsOfMetadataAgree(t *testing.T) {
	live := decode(t, webWithSidecar)
	got, ok := fingerprint.Of(live, "us", metav1.ManagedFieldsOperationApply)
	if !ok {
		t.Fatal("no entry found")
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(webWithSidecar), &meta); err != nil {
		t.Fatal(err)
	}
	owned, ok := fingerprint.OfMetadata(&meta, "us", metav1.ManagedFieldsOperationApply)
	if !ok || owned != got.Owned {
		t.Errorf("from metadata %v, %v; from the object %v", owned, ok, got.Owned)
	}
	if _, ok := fingerprint.Of(live, "them", metav1.ManagedFieldsOperationApply); ok {
		t.Error("found an entry of a manager that has none")
	}
}

func TestParseReadsWhatStringWrote(t *testing.T) {
	want, _ := fingerprint.Of(decode(t, webWithSidecar), "us", metav1.ManagedFieldsOperationApply)
	got, err := fingerprint.Parse(want.String())
	if err != nil || got != want {
		t.Errorf("Parse(%q) = %v, %v", want, got, err)
	}
	if _, err := fingerprint.Parse(want.String()[1:]); err == nil {
		t.Error("a short text was read")
	}
}

func BenchmarkOf(b *testing.B) {
	live := decode(b, webWithSidecar)
	for b.Loop() {
		fingerprint.Of(live, "us", metav1.ManagedFieldsOperationApply)
	}
}
