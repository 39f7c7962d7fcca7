package kubesim_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// t is the test's in real life.
var t = &exampleT{}

// A test reaches the cluster with the clients it uses elsewhere.
func ExampleNew() {
	cluster := kubesim.New(t, kubesim.Options{CRDs: os.DirFS("testdata/crd")})
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	pond := &unstructured.Unstructured{}
	pond.SetAPIVersion("example.com/v1")
	pond.SetKind("Pond")
	pond.SetNamespace("default")
	pond.SetName("north")
	if err := c.Create(t.Context(), pond); err != nil {
		t.Fatal(err)
	}
	fmt.Println("size by default:", pond.Object["spec"].(map[string]any)["size"])

	pond.Object["spec"] = map[string]any{"size": 12}
	fmt.Println(c.Update(t.Context(), pond))

	duck := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "duck",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pond, pond.GroupVersionKind())},
	}}
	if err := c.Create(t.Context(), duck); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), pond); err != nil {
		t.Fatal(err)
	}
	fmt.Println(c.Get(t.Context(), client.ObjectKeyFromObject(duck), duck))

	// Output:
	// size by default: 3
	// Pond.example.com "north" is invalid: spec: Invalid value: too large for ducks
	// configmaps "duck" not found
}

// exampleT stands in for a test's *testing.T, which an example does not get.
type exampleT struct{ testing.TB }

func (exampleT) Helper()                  {}
func (exampleT) Context() context.Context { return context.Background() }
func (exampleT) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
