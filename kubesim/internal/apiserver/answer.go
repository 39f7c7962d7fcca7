package apiserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// Answer is an answer that the server did not give.
func Answer(r *http.Request, status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	text, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status is JSON
	}
	h := http.Header{"Content-Type": {"application/json"}}
	return response(int(status.Code), h, io.NopCloser(bytes.NewReader(text)), int64(len(text)), r)
}

// Serve lets a handler answer a request, in the process.
func Serve(h http.Handler, r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.response(r), nil
}

// Body reads the body of a request, and leaves the request as it was.
func Body(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	_ = r.Body.Close() // it was in memory
	r.Body = io.NopCloser(bytes.NewReader(text))
	return text
}

// Name is the namespace and name of the object in a body; empty if it has none.
func Name(body []byte) types.NamespacedName {
	if bytes.HasPrefix(body, []byte("{")) {
		var named struct { // decoding all metadata takes much longer
			Metadata struct{ Name, Namespace string } `json:"metadata"`
		}
		_ = json.Unmarshal(body, &named) // what is no object has no name
		return types.NamespacedName{Namespace: named.Metadata.Namespace, Name: named.Metadata.Name}
	}
	var o metav1.PartialObjectMetadata
	var unknown runtime.Unknown
	raw, isProtobuf := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !isProtobuf || unknown.Unmarshal(raw) != nil || o.Unmarshal(unknown.Raw) != nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// Content is the object in a body as its author wrote it, without defaults; nil if it has none.
func Content(body []byte) map[string]any {
	if bytes.HasPrefix(body, []byte("{")) {
		var content map[string]any
		if json.Unmarshal(body, &content) != nil {
			return nil
		}
		return content
	}
	decoded, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decoded)
	if err != nil {
		return nil
	}
	return content
}

// Preconditions reads what a delete requires of its object, and leaves the request as it was.
func Preconditions(r *http.Request) (uid, resourceVersion string) {
	text := Body(r)
	if text == nil {
		return "", ""
	}
	options := deleteOptions(text)
	if options == nil || options.Preconditions == nil {
		return "", ""
	}
	if p := options.Preconditions.UID; p != nil {
		uid = string(*p)
	}
	if p := options.Preconditions.ResourceVersion; p != nil {
		resourceVersion = *p
	}
	return uid, resourceVersion
}

// deleteOptions decodes the body of a delete; nil if it has none or they are malformed. Clients write them in the group of
// the object, and no codec here knows the groups of custom kinds, which are in JSON.
func deleteOptions(text []byte) *metav1.DeleteOptions {
	options := &metav1.DeleteOptions{}
	if bytes.HasPrefix(text, []byte("{")) {
		if json.Unmarshal(text, options) != nil {
			return nil
		}
		return options
	}
	decoded, _, err := legacyscheme.Codecs.UniversalDeserializer().Decode(text, nil, options)
	options, ok := decoded.(*metav1.DeleteOptions)
	if err != nil || !ok {
		return nil
	}
	return options
}
