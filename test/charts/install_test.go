package charts_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
	"helm.sh/helm/v4/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	sigsyaml "sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	kube.ManagedFieldsManager = "helm" // as the command is called
	os.Exit(m.Run())
}

// installed are charts of the table that are installed with some values and upgraded to others, as YAML.
func installed() map[string][2]string {
	return map[string][2]string{
		"cert-manager": {
			`crds: {enabled: true, keep: false}`,
			`{crds: {enabled: true, keep: false}, replicaCount: 2, podDisruptionBudget: {enabled: true}}`,
		},
		"pebble": {`{}`, `image: {tag: other}`},
		"trust-manager": {
			`{crds: {keep: false}, app: {webhook: {tls: {helmCert: {enabled: true}}}}}`,
			`{crds: {keep: false}, app: {webhook: {tls: {helmCert: {enabled: true}}}}, replicaCount: 2}`,
		},
		"aws-pca-issuer":       {`{}`, `replicaCount: 2`},
		"eck-operator":         {`{}`, `replicaCount: 2`},
		"kwok":                 {`{}`, `replicas: 2`},
		"library":              {`{}`, `replicaCount: 2`},
		"order":                {`{}`, `unused: 1`},
		"sub-charts":           {`{}`, `tags: {front-end: false}`},
		"imports from aliases": {`{}`, `unused: 1`},
		"packed library":       {`{}`, `replicaCount: 2`},
		"karpenter":            {`{}`, `additionalLabels: {a: b}`},
	}
}

// TestInstall installs public charts on a control plane, leaves them alone, upgrades and deletes them.
func TestInstall(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	for name, values := range installed() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ok := fromModules()[name]
			if !ok {
				t.Fatal("it is not in the table")
			}
			g, err := helm.NewGenerator(os.DirFS(c.place(t)), ".", helm.Options{SkipCRDs: c.noDefinitions})
			if err != nil {
				t.Fatal(err)
			}
			counted, requests := testenv.Requests(cfg)
			admin, namespace := testenv.Client(t, cfg, product.AddToScheme), testenv.Namespace(t, cfg)
			passes := operate(t, counted, namespace, g)
			p := &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}}
			p.Spec.Objects = []runtime.RawExtension{{Raw: jsonOf(t, values[0])}}
			if err := admin.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			rests(t, admin, p, passes, requests)
			p.Spec.Objects = []runtime.RawExtension{{Raw: jsonOf(t, values[1])}}
			if err := admin.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			rests(t, admin, p, passes, requests)
			if err := admin.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			testenv.Gone(t, admin, p, "the chart to be gone")
		})
	}
}

// rests waits until a component is ready for its present values, and requires that passes over it write nothing then, and
// soon read nothing.
func rests(t *testing.T, admin client.WithWatch, p *product.Product, passes <-chan struct{}, requests *testenv.Log) {
	t.Helper()
	live := testenv.Wait(t, admin, p.DeepCopy(), "Ready", func(p *product.Product) bool {
		return p.Status.State == component.StateReady && p.Status.AppliedGeneration == p.Generation
	})
	live.DeepCopyInto(p)
	for {
		requests.Reset()
		for range 5 {
			<-passes
		}
		sent := requests.Select(func(r testenv.Request) bool { return r.Verb != "watch" && r.Resource != "events" }) // one says that it is Ready
		for _, r := range sent {
			if r.Verb != "get" && r.Verb != "list" {
				t.Errorf("at rest: %v", r)
				return
			}
		}
		if len(sent) == 0 { // the API server is asked what it serves for some seconds after a definition was added
			return
		}
	}
}

func jsonOf(t *testing.T, text string) []byte {
	t.Helper()
	out, err := sigsyaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// counted is a renderer that counts passes.
type counted struct {
	component.Renderer[*product.Product]
	component.Versioned

	passes chan<- struct{}
}

// Version is asked for in each pass.
func (c counted) Version() string {
	select {
	case c.passes <- struct{}{}:
	default:
	}
	return c.Versioned.Version()
}

// operate runs an operator of a chart in a namespace. The values of a Product are the first of its objects. It returns a
// channel that gets a token for each pass.
func operate(t *testing.T, cfg *rest.Config, namespace string, g *helm.Generator) <-chan struct{} {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, product.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := manager.New(cfg, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	passes := make(chan struct{})
	values := func(p *product.Product) (values map[string]any, err error) {
		return values, json.Unmarshal(p.Spec.Objects[0].Raw, &values)
	}
	r := counted{helm.NewRenderer(g, values), g, passes}
	options := component.Options[*product.Product]{Name: namespace + ".charts.test", HandoverGrace: -1, RequeueInterval: 100 * time.Millisecond}
	if err := component.New[*product.Product](r, options).SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	return passes
}
