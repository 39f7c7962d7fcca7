package external_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// BenchmarkPass is what a visit of an object in sync costs beside the calls of its API, which is a
// map here.
func BenchmarkPass(b *testing.B) {
	visit := inSync(b)
	b.ReportAllocs()
	for b.Loop() {
		visit()
	}
}

// inSync makes an object and its thing and returns what visits the object.
func inSync(b *testing.B) func() {
	b.Helper()
	cfg := testenv.Start(b)
	testenv.InstallFS(b, cfg, thing.CRDs)
	admin, namespace := testenv.Client(b, cfg, thing.AddToScheme), testenv.Namespace(b, cfg)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: admin.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		b.Fatal(err)
	}
	store := shelf{}
	controller := external.New(boxes{}, external.Options[*thing.Thing, shelf]{
		Connect:     func(context.Context) (shelf, error) { return store, nil },
		CreateGrace: -1,
	})
	if err := controller.SetupWithManager(mgr); err != nil {
		b.Fatal(err)
	}
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Spec: thing.Spec{Size: 1}}
	if err := admin.Create(b.Context(), obj); err != nil {
		b.Fatal(err)
	}
	go func() { _ = mgr.GetCache().Start(b.Context()) }() // its workers would visit too
	mgr.GetCache().WaitForCacheSync(b.Context())
	visit := func() {
		if _, err := controller.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
			b.Fatal(err)
		}
	}
	visit()
	seen := testenv.Wait(b, admin, obj, "the object to become Ready", func(t *thing.Thing) bool { return is(t, "Ready", "True") })
	cached := &thing.Thing{}
	if !poll.Until(func() bool {
		_ = mgr.GetClient().Get(b.Context(), client.ObjectKeyFromObject(obj), cached)
		return cached.ResourceVersion == seen.ResourceVersion
	}) {
		b.Fatal("the cache does not show the object as it is")
	}
	return visit
}
