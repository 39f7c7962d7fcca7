package kubesim_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

func TestBubble(t *testing.T) {
	for range 3 {
		start := time.Now()
		synctest.Test(t, func(t *testing.T) {
			c := kubesim.New(t, kubesim.Options{})
			k, err := client.New(c.Config(), client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		})
		t.Log(time.Since(start))
	}
}
