package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
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
