package sandbox

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// What is remembered is what the server would answer, in the same run, after each write, and in an equal one.
func TestReader(t *testing.T) {
	server, err := apiserver.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Settings{Server: server, Scheme: clientscheme.Scheme, Mapper: server.Mapper(), Memory: NewMemory()}
	for run := range 2 {
		box, err := New(s, &history.Recorder{Run: &history.Run{}})
		if err != nil {
			t.Fatal(err)
		}
		c, ok := box.World().Client.(reader)
		if !ok {
			t.Fatalf("the client is a %T", box.World().Client)
		}
		compareReads(t, c, "no map")
		for _, name := range []string{"a", "b"} {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"is": name}}}
			if err := c.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			compareReads(t, c, fmt.Sprintf("run %d, map %s", run, name))
			if err := c.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"x":"y"}}`))); err != nil {
				t.Fatal(err)
			}
			compareReads(t, c, fmt.Sprintf("run %d, changed map %s", run, name))
			if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}}); err == nil {
				t.Error("a Secret that does not exist was deleted")
			}
		}
		if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		compareReads(t, c, fmt.Sprintf("run %d, a map less", run))
	}
	if len(s.Memory.reads) == 0 {
		t.Error("nothing is remembered")
	}
}

// compareReads reads twice, and once more without the memory. Whoever reads may change what was read.
func compareReads(t *testing.T, c reader, when string) {
	t.Helper()
	untyped := &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	metadata := &metav1.PartialObjectMetadataList{}
	metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}, untyped, metadata} {
		for _, opts := range [][]client.ListOption{nil, {client.InNamespace("default")}, {client.InNamespace("other")}, {client.MatchingLabels{"is": "b"}}, {client.MatchingFields{"metadata.name": "a"}}} {
			want := list.DeepCopyObject().(client.ObjectList)
			wantErr := c.Client.List(t.Context(), want, opts...)
			for range 2 {
				got := list.DeepCopyObject().(client.ObjectList)
				gotErr := c.List(t.Context(), got, opts...)
				if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
					t.Errorf("%s: a list of %T with %v: %v, want %v (-want +got):\n%s", when, list, opts, gotErr, wantErr, diff)
				}
				got.SetResourceVersion("changed")
				if maps, ok := got.(*corev1.ConfigMapList); ok && len(maps.Items) > 0 {
					maps.Items[0].Name = "changed"
				}
			}
		}
	}
	one := &unstructured.Unstructured{}
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	for _, obj := range []client.Object{&corev1.ConfigMap{Data: map[string]string{"old": "old"}}, one} {
		key := client.ObjectKey{Namespace: "default", Name: "a"}
		want := obj.DeepCopyObject().(client.Object)
		wantErr := c.Client.Get(t.Context(), key, want)
		for range 2 {
			got := obj.DeepCopyObject().(client.Object)
			gotErr := c.Get(t.Context(), key, got)
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
				t.Errorf("%s: a %T: %v, want %v (-want +got):\n%s", when, obj, gotErr, wantErr, diff)
			}
			got.SetLabels(map[string]string{"changed": "changed"})
		}
	}
}
