package component_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/gobuild"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// greetings is the name of the operator in internal/kubebuilder and the group of its kind.
const greetings = "greetings.trimtab.dev"

// TestKubebuilder runs the operator of a kubebuilder project.
func TestKubebuilder(t *testing.T) {
	t.Parallel()
	t.Run("004-02 a main function with SetupWithManager alone", func(t *testing.T) {
		cfg := testenv.Start(t)
		admin, namespace := testenv.Client(t, cfg), testenv.Namespace(t, cfg)
		testenv.Install(t, cfg, plain(schema.GroupKind{Group: greetings, Kind: "Greeting"}))
		stop := runKubebuilder(t, cfg, namespace)
		hello := object(greetings+"/v1", "Greeting", "hello", map[string]any{"spec": map[string]any{"text": "hello"}})
		hello.SetNamespace(namespace)
		if err := admin.Create(t.Context(), hello.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, admin, hello, "Ready", func(u *unstructured.Unstructured) bool {
			state, _, _ := unstructured.NestedString(u.Object, "status", "state")
			return state == "Ready"
		})
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}}
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Data["text"] != "hello" {
			t.Errorf("%v: %v", err, m.Data)
		}
		lease := &coordinationv1.Lease{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: greetings}, lease); err != nil {
			t.Error(err)
		}
		if err := admin.Delete(t.Context(), hello.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		testenv.Gone(t, admin, hello, "deleted")
		testenv.Gone(t, admin, m, "deleted")
		stop()
	})
}

// runKubebuilder builds the operator and runs it until the function that it returns is called.
func runKubebuilder(t *testing.T, cfg *rest.Config, namespace string) (stop func()) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "manager")
	if out, err := gobuild.Output(t, "./internal/kubebuilder", "-o", binary); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var said strings.Builder
	manager := exec.CommandContext(t.Context(), binary, "--leader-elect")
	manager.Env = append(os.Environ(), "KUBECONFIG="+testenv.Kubeconfig(t, cfg), "POD_NAMESPACE="+namespace)
	manager.Stdout, manager.Stderr = &said, &said
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = manager.Process.Signal(syscall.SIGTERM)
		if err := manager.Wait(); err != nil || t.Failed() {
			t.Errorf("the operator ended: %v\n%s", err, said.String())
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestNames: everything that an operator writes carries its name, and nothing of another operator is written.
func TestNames(t *testing.T) {
	t.Parallel()
	t.Run("004-31 two operators with the same objects' names", func(t *testing.T) {
		t.Parallel()
		shops := []*shop{newShop(t), newShop(t)}
		var both sync.WaitGroup
		for _, s := range shops {
			s.start()
			both.Go(func() { s.live(t) })
		}
		both.Wait()
		for n, s := range shops {
			other := shops[1-n]
			for _, r := range s.requests.All() {
				if r.IsWrite() && r.Namespace == other.namespace {
					t.Errorf("%s wrote what belongs to %s: %s", s.operator, other.operator, r)
				}
			}
		}
	})
}

// live installs, changes and deletes a component and checks the names that are used.
func (s *shop) live(t *testing.T) {
	t.Helper()
	slow := configMap("one", "1", s.operator+"/apply-order", "-1")
	s.create(product.Spec{}, slow, configMap("two", "1"), plain(schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"}))
	p := s.is("Ready", "Ready")
	if len(p.Finalizers) != 1 || p.Finalizers[0] != s.operator+"/finalizer" {
		t.Errorf("finalizers %v", p.Finalizers)
	}
	for _, name := range []string{"one", "two"} {
		m := s.configMap(name)
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Error(err)
		}
		s.carriesNames(t, m)
	}
	crd := plain(schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"})
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Error(err)
	}
	s.carriesNames(t, crd)
	s.patch(`{"spec":{"objects":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"value":"2"}}]}}`)
	s.patch(`{"metadata":{"annotations":{"` + s.operator + `/allow-prune":"2"}}}`)
	testenv.Gone(t, s.admin, s.configMap("two"), "removed")
	s.is("Ready", "Ready")
	s.delete()
	testenv.Gone(t, s.admin, s.named("a"), "deleted")
	testenv.Gone(t, s.admin, s.configMap("one"), "deleted")
}

// carriesNames checks the keys that an operator added to an object, and its field manager.
func (s *shop) carriesNames(t *testing.T, obj client.Object) {
	t.Helper()
	ours := false
	for _, e := range obj.GetManagedFields() {
		if text, err := json.Marshal(e.FieldsV1); err == nil && strings.Contains(string(text), "f:"+s.operator+"/owner-id") {
			if ours = true; e.Manager != s.operator {
				t.Errorf("the field manager is %s", e.Manager)
			}
		}
	}
	if !ours || obj.GetLabels()[s.operator+"/owner-id"] == "" {
		t.Errorf("%s has no owner: %v", obj.GetName(), obj.GetLabels())
	}
	for _, keys := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
		for key := range keys {
			if !strings.HasPrefix(key, s.operator+"/") {
				t.Errorf("%s has the key %s", obj.GetName(), key)
			}
		}
	}
}
