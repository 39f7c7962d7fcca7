package plain

import (
	"context"
	"net/http"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// region: test

func TestSurvivesEverything(t *testing.T) {
	db := &Database{ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: DatabaseSpec{Size: 10}}
	fault.Run(t, fault.Scenario{
		Name: "orders",
		Operator: fault.Operator{
			CRDs: os.DirFS("config/crd"), RBAC: os.DirFS("config/rbac"), AddToScheme: AddToScheme,
			SetUp: func(mgr ctrl.Manager, env *fault.Env) error {
				r := &Reconciler{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorder("databases")}
				r.Vendor = &HTTPVendor{URL: "http://vendor", Client: &http.Client{Transport: fault.HTTP(env, (*Fake).Handler)}}
				return r.SetupWithManager(mgr)
			},
		},
		ExternalAPI: func() fault.ExternalAPI { return &Fake{} },
		Steps: []fault.Step{
			fault.Create(db).Becomes(db, "Ready"),
			fault.Merge(db, `{"spec":{"size":20}}`).Becomes(db, "Ready"),
			fault.Delete(db).Gone(db),
		},
	})
}

// endregion: test

// The same with a vendor behind a Go interface.
func TestSurvivesEverythingBehindAnInterface(t *testing.T) {
	r := fault.Run(t, scenario())
	t.Logf("%d writes, %d schedules in %v", r.Writes, total(r), r.Took)
}

func total(r fault.Report) int {
	n := 0
	for _, of := range r.Schedules {
		n += of
	}
	return n
}

func scenario() fault.Scenario {
	db := &Database{ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: DatabaseSpec{Size: 10}}
	return fault.Scenario{
		Name: "orders behind an interface",
		Operator: fault.Operator{
			CRDs: os.DirFS("config/crd"), RBAC: os.DirFS("config/rbac"), AddToScheme: AddToScheme,
			SetUp: func(mgr ctrl.Manager, env *fault.Env) error {
				r := &Reconciler{Client: mgr.GetClient(), Vendor: wrapped{env}, Recorder: mgr.GetEventRecorder("databases")}
				return r.SetupWithManager(mgr)
			},
		},
		ExternalAPI: func() fault.ExternalAPI { return &Fake{} },
		Steps: []fault.Step{
			fault.Create(db).Becomes(db, "Ready"),
			fault.Merge(db, `{"spec":{"size":20}}`).Becomes(db, "Ready"),
			fault.Delete(db).Gone(db),
		},
	}
}

// wrapped is the vendor in memory, with each call under the explorer's control.
type wrapped struct{ env *fault.Env }

// region: wrapper

func (v wrapped) Find(ctx context.Context, owner string) (*Instance, error) {
	return fault.Read(ctx, v.env, "find instance", func(f *Fake) (*Instance, error) { return f.Find(owner) })
}

func (v wrapped) Create(ctx context.Context, want Instance) (*Instance, error) {
	return fault.Write(ctx, v.env, "create instance", func(f *Fake) (*Instance, error) { return f.Create(want) })
}

// endregion: wrapper

func (v wrapped) Resize(ctx context.Context, id string, size int64) error {
	_, err := fault.Write(ctx, v.env, "resize instance", func(f *Fake) (any, error) { return nil, f.Resize(id, size) })
	return err
}

func (v wrapped) Delete(ctx context.Context, id string) error {
	_, err := fault.Write(ctx, v.env, "delete instance", func(f *Fake) (any, error) { return nil, f.Delete(id) })
	return err
}

var _ Vendor = wrapped{}

// An operator that takes a failed delete for done is found out, or the tests above are worth
// nothing.
func TestFindsWhatIsWrong(t *testing.T) {
	s := scenario()
	s.Operator.SetUp = func(mgr ctrl.Manager, env *fault.Env) error {
		r := &Reconciler{Client: mgr.GetClient(), Vendor: hasty{wrapped{env}}, Recorder: mgr.GetEventRecorder("databases")}
		return r.SetupWithManager(mgr)
	}
	r := fault.Explore(t, s, fault.Only(fault.Faults))
	if len(r.Findings) == 0 {
		t.Error("an operator that takes a failed delete for done has no finding")
	}
}

// hasty takes each delete for done.
type hasty struct{ wrapped }

func (v hasty) Delete(ctx context.Context, id string) error {
	_ = v.wrapped.Delete(ctx, id)
	return nil
}
