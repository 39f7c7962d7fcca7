package beside

import (
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/test/beside/internal/bare"
	"github.com/trimtab-dev/trimtab/test/beside/internal/cloud"
	"github.com/trimtab-dev/trimtab/test/beside/internal/ours"
	"github.com/trimtab-dev/trimtab/testenv"
)

// mostBytes and mostAllocations are the most that a pass that changes nothing may allocate.
const mostBytes, mostAllocations = 10_000, 105

// TestPassBudget checks what a pass that changes nothing allocates.
func TestPassBudget(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates, too")
	}
	pass := settled(t, controlled)
	const passes = 5_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range passes {
		pass()
	}
	runtime.ReadMemStats(&after)
	bytes, allocations := (after.TotalAlloc-before.TotalAlloc)/passes, (after.Mallocs-before.Mallocs)/passes
	t.Logf("a pass that changes nothing allocates %d bytes %d times", bytes, allocations)
	if bytes > mostBytes || allocations > mostAllocations {
		t.Errorf("want at most %d bytes and %d allocations", mostBytes, mostAllocations)
	}
}

// BenchmarkPass is a pass that changes nothing, without the time of the external API.
func BenchmarkPass(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		repeat(b, controlled)
	})
	b.Run("bare", func(b *testing.B) {
		repeat(b, func(mgr manager.Manager, api cloud.API) (reconcile.Reconciler, error) {
			return &bare.Reconciler{Client: mgr.GetClient(), Cloud: api, Drift: time.Hour}, nil
		})
	})
}

// setup adds an operator to a manager.
type setup func(manager.Manager, cloud.API) (reconcile.Reconciler, error)

// controlled adds the operator that is written with trimtab.
func controlled(mgr manager.Manager, api cloud.API) (reconcile.Reconciler, error) {
	c := ours.Controller(func() cloud.API { return api }, time.Hour, 1)
	return c, c.SetupWithManager(mgr)
}

// repeat reconciles an object that is Ready again and again.
func repeat(b *testing.B, set setup) {
	b.Helper()
	pass := settled(b, set)
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
}

// settled returns a pass over an object that is Ready.
func settled(b testing.TB, set setup) (pass func()) {
	b.Helper()
	cfg := testenv.Start(b)
	testenv.InstallFS(b, cfg, thing.CRDs)
	admin := testenv.Client(b, cfg, thing.AddToScheme)
	namespace := testenv.Namespace(b, cfg)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: admin.Scheme(), Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		b.Fatal(err)
	}
	api := &cloud.Memory{}
	r, err := set(mgr, api)
	if err != nil {
		b.Fatal(err)
	}
	obj := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Spec: thing.Spec{Size: 1}}
	if err := admin.Create(b.Context(), obj); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // without its operator, nobody else takes off the finalizer
		_ = admin.Patch(b.Context(), obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	})
	go func() { _ = mgr.GetCache().Start(b.Context()) }() // not the manager, whose workers would reconcile too
	mgr.GetCache().WaitForCacheSync(b.Context())
	pass = func() {
		if _, err := r.Reconcile(b.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
			b.Fatal(err)
		}
	}
	pass()
	written := testenv.Wait(b, admin, obj, "the object to become Ready", ready)
	cached := &thing.Thing{}
	if !poll.Until(func() bool {
		_ = mgr.GetClient().Get(b.Context(), client.ObjectKeyFromObject(obj), cached)
		return cached.ResourceVersion == written.ResourceVersion
	}) {
		b.Fatal("the cache does not show the object as it is")
	}
	return pass
}
