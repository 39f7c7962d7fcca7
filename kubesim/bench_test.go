package kubesim_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// BenchmarkFirstRequest is what a test pays for a cluster with a CRD: New, a client with its
// discovery, and a first object. The first cluster of a process costs some 40 ms more.
func BenchmarkFirstRequest(b *testing.B) {
	for b.Loop() {
		c := kubesim.New(b, kubesim.Options{CRDs: os.DirFS("testdata/crd")})
		k, err := client.New(c.Config(), client.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := k.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}); err != nil {
			b.Fatal(err)
		}
	}
}
