package lint_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/crdcheck"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// shop is a kind whose spec finds its database by a field.
const shop = `
metadata: {name: shops.example.org}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              `

const (
	byLabel      = shop + "databaseInstance: {type: object, properties: {matchLabels: {type: object, additionalProperties: {type: string}}}}"
	byAnnotation = shop + "databaseInstanceAnnotations: {type: object, additionalProperties: {type: string}}"
	byName       = shop + "databaseInstance: {type: string, minLength: 1, maxLength: 253, pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$'}"
)

// lister finds ConfigMaps by a label in each pass, and tells how many there are.
type lister struct{ found chan int }

func (l lister) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	maps := &corev1.ConfigMapList{}
	if err := r.Client().List(ctx, maps, client.InNamespace(r.Obj.Namespace), client.MatchingLabels{"of": r.Obj.Name}); err != nil {
		return loop.Fail(err)
	}
	l.found <- len(maps.Items)
	return loop.Done()
}

func TestLabels(t *testing.T) {
	t.Parallel()
	t.Run("003-07 a dependency by labels or annotations in an API is found, a query by labels in a pass is none and costs no request", func(t *testing.T) {
		t.Parallel()
		check := func(text string) error {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
				t.Fatal(err)
			}
			return crdcheck.References(crd)
		}
		if err := check(byLabel); err == nil || !strings.Contains(err.Error(), "spec.databaseInstance is a dependency by labels") {
			t.Errorf("a dependency by labels: %v", err)
		}
		if err := check(byAnnotation); err == nil || !strings.Contains(err.Error(), "spec.databaseInstanceAnnotations is a dependency by a map") {
			t.Errorf("a dependency by annotations: %v", err)
		}
		if err := check(byName); err != nil {
			t.Errorf("a dependency by name: %v", err)
		}
		queries(t)
	})
}

// queries checks that a pass lists by label from the cache, and that no analyzer minds.
func queries(t *testing.T) {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.CRDs)
	admin, namespace := testenv.Client(t, cfg, probe.AddToScheme), testenv.Namespace(t, cfg)
	counted, requests := testenv.Requests(cfg)
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := lister{found: make(chan int, 100)}
	if err := loop.New[*probe.Probe](l, loop.Options[*probe.Probe]{Name: t.Name()}).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	create := func(obj client.Object) {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	for name, of := range map[string]string{"one": "a", "two": "a", "three": "b"} {
		create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"of": of}}})
	}
	about := func() int {
		return len(requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" }))
	}
	informer := 0
	for _, want := range []struct {
		name  string
		count int
	}{{"a", 2}, {"b", 1}, {"c", 0}} {
		create(&probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: want.name}})
		select {
		case got := <-l.found:
			if got != want.count {
				t.Errorf("%s has %d ConfigMaps, want %d", want.name, got, want.count)
			}
		case <-time.After(poll.Patience):
			t.Fatalf("no pass over %s", want.name)
		}
		if informer == 0 {
			informer = about()
		}
	}
	if informer == 0 || about() != informer {
		t.Errorf("%d requests about ConfigMaps after the first pass, then %d; want those of one informer", informer, about()-informer)
	}
	dir := filepath.Join("testdata", "labels")
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if found := vet(t, "./"+dir); len(found) != 0 {
		t.Errorf("analyzers mind a query by labels: %v", found)
	}
}
