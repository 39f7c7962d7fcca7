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
		Name:        "create, resize, delete",
		CRDs:        os.DirFS("config/crd"),
		RBAC:        os.DirFS("config/rbac"),
		AddToScheme: AddToScheme,
		Outside:     func() fault.Outside { return &Fake{} },
		Operator: func(mgr ctrl.Manager, env *fault.Env) error {
			r := &Reconciler{Client: mgr.GetClient(), Vendor: wrapped{env}, Recorder: mgr.GetEventRecorder("databases")}
			return r.SetupWithManager(mgr)
		},
		Steps: []fault.Step{
			fault.Create(db).Becomes(db, "Ready"),
			fault.Merge(db, `{"spec":{"size":20}}`).Becomes(db, "Ready"),
			fault.Delete(db).Gone(db),
		},
	})
}

// endregion: test

// region: wrapper

// wrapped is the vendor in memory, with each call under the explorer's control.
type wrapped struct{ env *fault.Env }

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

// The vendor over HTTP: the operator's own client, on a transport that the explorer controls.
func TestSurvivesEverythingOverHTTP(t *testing.T) {
	db := &Database{ObjectMeta: metav1.ObjectMeta{Name: "orders"}, Spec: DatabaseSpec{Size: 10}}
	fault.Run(t, fault.Scenario{
		Name:        "over HTTP",
		CRDs:        os.DirFS("config/crd"),
		RBAC:        os.DirFS("config/rbac"),
		AddToScheme: AddToScheme,
		Outside:     func() fault.Outside { return &Fake{} },
		Operator: func(mgr ctrl.Manager, env *fault.Env) error {
			vendor := &HTTPVendor{URL: "http://vendor", Client: &http.Client{Transport: fault.HTTP(env, (*Fake).Handler)}}
			r := &Reconciler{Client: mgr.GetClient(), Vendor: vendor, Recorder: mgr.GetEventRecorder("databases")}
			return r.SetupWithManager(mgr)
		},
		Steps: []fault.Step{
			fault.Create(db).Becomes(db, "Ready"),
			fault.Merge(db, `{"spec":{"size":20}}`).Becomes(db, "Ready"),
			fault.Delete(db).Gone(db),
		},
	})
}
