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

// shelf is a tiny API: boxes by name.
type shelf map[string]box

// box is a thing as its API keeps it.
type box struct {
	size   int
	labels map[string]string
}

// boxes is the whole driver. T is the custom resource, C the API's client, O the thing.
type boxes struct{}

func (boxes) Observe(_ context.Context, r external.ObserveRequest[*thing.Thing, shelf]) (external.Observation[box], error) {
	b, found := r.Client[r.ID]
	if !found {
		return external.Missing[box](), nil
	}
	return external.Available(b, external.MarkOf(b.labels)), nil
}

func (boxes) Compare(r external.CompareRequest[*thing.Thing, box]) external.Changes {
	return external.Diff(external.Field("spec.size", r.Object.Spec.Size, r.Have.size))
}

func (boxes) Create(_ context.Context, r external.CreateRequest[*thing.Thing, shelf]) (external.CreateResponse[box], error) {
	r.Client[r.ID] = box{size: r.Object.Spec.Size, labels: r.Mark.On(nil)}
	return external.CreateResponse[box]{}, nil
}

func (boxes) Update(_ context.Context, r external.UpdateRequest[*thing.Thing, shelf, box]) (external.UpdateResponse[box], error) {
	r.Client[r.ID] = box{size: r.Object.Spec.Size, labels: r.Have.labels}
	return external.UpdateResponse[box]{}, nil
}

func (boxes) Delete(_ context.Context, r external.DeleteRequest[*thing.Thing, shelf]) (external.DeleteResponse, error) {
	delete(r.Client, r.ID)
	return external.DeleteResponse{}, nil
}
