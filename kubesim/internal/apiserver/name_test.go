package apiserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// TestName proves that the name of an object in a body is found in both of the encodings that clients use.
func TestName(t *testing.T) {
	o := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", GenerateName: "b"}, Data: map[string][]byte{"c": []byte("d")},
	}
	s := legacyscheme.Scheme
	for name, encoder := range map[string]runtime.Encoder{
		"JSON":     json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{}),
		"protobuf": protobuf.NewSerializer(s, s),
	} {
		body, err := runtime.Encode(encoder, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := Name(body).String(); got != "default/a" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for _, body := range []string{"", "{", "[]", "k8s\x00", "k8s\x00{}", "a: b"} {
		if got := Name([]byte(body)).String(); got != "/" {
			t.Errorf("%q: got %q", body, got)
		}
	}
}

// TestEventsOfOneMoment proves that no event is lost because simulated time stands still while an operator records several about
// one object, and that one which is sent twice is stored once.
func TestEventsOfOneMoment(t *testing.T) {
	events := newGuardedCluster(t).admin().CoreV1().Events("default")
	record := func(name, message string) string {
		made, err := events.Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Type: "Normal", Reason: "Created", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: "a", UID: "1"},
		}, metav1.CreateOptions{})
		if err != nil {
			return string(apierrors.ReasonForError(err))
		}
		return made.Name
	}
	now := time.Now().UnixNano()
	name := func(n int64) string { return util.GenerateEventName("a", now+n) }
	got := []string{
		record(name(0), "one"), record(name(0), "two"), record(name(0), "two"), record(name(1), "three"),
		record("b", "one"), record("b", "two"), record("c.1", "one"), record("c.1", "two"),
	}
	want := []string{name(0), name(1), "AlreadyExists", name(2), "b", "AlreadyExists", "c.1", "AlreadyExists"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of events (-want +got):\n%s", diff)
	}
}
