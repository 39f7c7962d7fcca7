package kubesim_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// keeper puts up a ConfigMap with the depth of each pond, and a duck into it.
type keeper struct{ client.Client }

func (k keeper) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	p := &unstructured.Unstructured{}
	p.SetAPIVersion("example.com/v1")
	p.SetKind("Pond")
	if err := k.Get(ctx, r.NamespacedName, p); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	sign := configMap(r.Name)
	sign.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	sign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, p.GroupVersionKind())}
	depth, _, err := unstructured.NestedString(p.Object, "spec", "depth")
	if err != nil {
		return reconcile.Result{}, err
	}
	sign.Data = map[string]string{"depth": depth}
	if err := k.Patch(ctx, sign, client.Apply, client.FieldOwner("keeper"), client.ForceOwnership); err != nil {
		return reconcile.Result{}, err
	}
	if ducks, _, err := unstructured.NestedInt64(p.Object, "status", "ducks"); err != nil || ducks == 1 {
		return reconcile.Result{RequeueAfter: time.Hour}, err
	}
	if err := unstructured.SetNestedField(p.Object, int64(1), "status", "ducks"); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: time.Hour}, k.Status().Update(ctx, p)
}

// startKeeper runs a manager until the test ends.
func startKeeper(t *testing.T, c *kubesim.Cluster) {
	t.Helper()
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Logger:                  logr.Discard(),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(time.Duration),
		LeaderElection:          true, LeaderElectionID: "keeper", LeaderElectionNamespace: "default",
	})
	must(t, err)
	p := pond(t, "", "")
	must(t, ctrl.NewControllerManagedBy(mgr).Named("keeper").For(p).Owns(&corev1.ConfigMap{}).Complete(keeper{mgr.GetClient()}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestManagerInABubble(t *testing.T) {
	for range 2 { // one bubble after another
		synctest.Test(t, func(t *testing.T) {
			c, k := newCluster(t)
			startKeeper(t, c)
			p := pond(t, "north", `, "spec": {"depth": "1m"}`)
			must(t, k.Create(t.Context(), p))
			sign := configMap("north")
			look := func(after time.Duration) []any {
				time.Sleep(after)
				synctest.Wait()
				must(t, k.Get(t.Context(), client.ObjectKeyFromObject(p), p))
				must(t, k.Get(t.Context(), client.ObjectKeyFromObject(sign), sign))
				ducks, _, _ := unstructured.NestedInt64(p.Object, "status", "ducks")
				return []any{sign.Data["depth"], ducks}
			}
			if diff := cmp.Diff([]any{"1m", int64(1)}, look(time.Minute)); diff != "" {
				t.Errorf("a pond is made (-want +got):\n%s", diff)
			}
			must(t, k.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"depth":"2m"}}`))))
			if diff := cmp.Diff([]any{"2m", int64(1)}, look(time.Minute)); diff != "" {
				t.Errorf("a pond is changed (-want +got):\n%s", diff)
			}
			must(t, k.Delete(t.Context(), sign))
			if diff := cmp.Diff([]any{"2m", int64(1)}, look(10*time.Minute)); diff != "" {
				t.Errorf("what it owns is deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManagerInRealTime(t *testing.T) {
	c, k := newCluster(t)
	startKeeper(t, c)
	p := pond(t, "north", `, "spec": {"depth": "1m"}`)
	w, err := clientset(t, c.Config()).CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	must(t, k.Create(t.Context(), p))
	if got := see(w); got != "ADDED north" {
		t.Errorf("the first event is %s; want ADDED north", got)
	}
}

func TestErrorsDoNotSleepForYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newCluster(t)
		began := time.Now()
		utilruntime.HandleErrorWithContext(klog.NewContext(t.Context(), logr.Discard()), errors.New("a test"), "nothing")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("reporting an error took %s of the simulated clock", took)
		}
	})
}

// TestQuiet plays other tests in a process of their own and looks at what it prints.
func TestQuiet(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestBuiltIn|TestCustom|TestInstallCRD|TestService|TestPods|TestUsers|TestManager")
	out, err := cmd.CombinedOutput()
	must(t, err)
	if diff := cmp.Diff("PASS\n", string(out)); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}
