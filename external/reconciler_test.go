package external_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/loop/looptest"
)

// fakeCluster holds a bucket, and knows who it is.
func fakeCluster(t *testing.T, b *Bucket) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.org", Version: "v1"}, &Bucket{})
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "cluster"}}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(system, b).Build()
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// TestNewReconciler leads a bucket through its life without an API server, and with a map as its API.
func TestNewReconciler(t *testing.T) {
	t.Run("E0-63 E0-71 the engine runs without Kubernetes and without the API", func(t *testing.T) {
		b := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "images", UID: "u1", Generation: 1}, Spec: BucketSpec{Quota: 1}}
		cluster, api := fakeCluster(t, b), store{}
		r := external.NewReconciler(buckets{}, external.Options[*Bucket, store]{
			CreateGrace: -1,
			Connect:     func(context.Context) (store, error) { return api, nil },
		})
		pass := func() *looptest.Pass[*Bucket] {
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			return looptest.NewPass(b, looptest.Options[*Bucket]{Client: cluster})
		}
		p := pass()
		if got := p.Report(r.Reconcile(t.Context(), p.Run)); got.State != "Succeeded" || len(api) != 1 {
			t.Errorf("created: %+v, buckets %v", got, api)
		}
		pass() // reads it
		b.Spec.Quota = 2
		if err := cluster.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		p = pass()
		if got := p.Report(r.Reconcile(t.Context(), p.Run)); got.State != "Succeeded" || len(api) != 1 {
			t.Errorf("updated: %+v, buckets %v", got, api)
		}
		for _, made := range api {
			if made.quota != 2 {
				t.Errorf("quota %d", made.quota)
			}
		}
		cleaner, is := r.(loop.Cleaner[*Bucket])
		if !is {
			t.Fatal("the engine deletes nothing")
		}
		b.SetDeletionTimestamp(new(metav1.Now()))
		p = looptest.NewPass(b, looptest.Options[*Bucket]{Client: cluster})
		if got := p.ReportCleanup(cleaner.Cleanup(t.Context(), p.Run)); len(api) > 0 {
			t.Errorf("deleted: %+v, buckets %v", got, api)
		}
	})
}
