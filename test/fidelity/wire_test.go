//go:build !race

package fidelity

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const protobufType = "application/vnd.kubernetes.protobuf"

// toProtobuf encodes an object as typed clients do. It returns the JSON itself where a typed
// client could not have said the same.
func toProtobuf(body []byte) ([]byte, string) {
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return body, jsonType
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &b); err != nil {
		return body, jsonType
	}
	return b.Bytes(), protobufType
}

// fromProtobuf decodes what a server sends to typed clients.
func fromProtobuf(body []byte) ([]byte, error) {
	obj, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", body, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	b, err := json.Marshal(obj)
	// Protobuf has no empty lists, only none.
	return bytes.Replace(b, []byte(`"items":null`), []byte(`"items":[]`), 1), err
}
