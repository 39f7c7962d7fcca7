package charts_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shop is the chart of these tests.
const shop = "testdata/shop"

// world is a namespace with a Helm release of the chart, and Helm itself.
type world struct {
	t         *testing.T
	cfg       *rest.Config
	admin     client.WithWatch
	namespace string
	requests  *testenv.Log
	counted   *rest.Config
	// chart is the folder of the chart, and csa has it applied as Helm 3 does.
	chart string
	csa   bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	counted, requests := testenv.Requests(cfg)
	return &world{t: t, cfg: cfg, admin: testenv.Client(t, cfg, product.AddToScheme), namespace: testenv.Namespace(t, cfg), requests: requests, counted: counted, chart: shop}
}

// helm returns the configuration of Helm's actions.
func (w *world) helm() *action.Configuration {
	w.t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.APIServer, flags.Namespace = &w.cfg.Host, &w.namespace
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return rest.CopyConfig(w.cfg) }
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := cfg.Init(flags, w.namespace, "secret"); err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

// install is helm install.
func (w *world) install(values map[string]any) error {
	w.t.Helper()
	i := action.NewInstall(w.helm())
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = name, w.namespace, kube.StatusWatcherStrategy, patience
	i.ServerSideApply = !w.csa
	c, err := loader.LoadDir(w.chart)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = i.RunWithContext(w.t.Context(), c, values)
	return err
}

// upgrade is helm upgrade.
func (w *world) upgrade(values map[string]any) error {
	w.t.Helper()
	u := action.NewUpgrade(w.helm())
	u.Namespace, u.WaitStrategy, u.Timeout = w.namespace, kube.StatusWatcherStrategy, patience
	c, err := loader.LoadDir(w.chart)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = u.RunWithContext(w.t.Context(), name, c, values)
	return err
}

// uninstall is helm uninstall.
func (w *world) uninstall() error {
	w.t.Helper()
	u := action.NewUninstall(w.helm())
	u.WaitStrategy, u.Timeout = kube.StatusWatcherStrategy, patience
	_, err := u.Run(name)
	return err
}

// releases is helm list.
func (w *world) releases() int {
	w.t.Helper()
	all, err := action.NewList(w.helm()).Run()
	if err != nil {
		w.t.Fatal(err)
	}
	return len(all)
}

// component returns the component of the release's name.
func (w *world) component() *product.Product {
	return &product.Product{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}

// take creates the component with an annotation and these values.
func (w *world) take(annotation, values string) {
	w.t.Helper()
	p := w.component()
	if annotation != "" {
		p.Annotations = map[string]string{w.annotation(): annotation}
	}
	p.Spec.Objects = []runtime.RawExtension{{Raw: []byte(values)}}
	if err := w.admin.Create(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) annotation() string { return w.operator() + "/" + api.SuffixHelmRelease }

func (w *world) operator() string { return w.namespace + ".charts.test" }

func (w *world) patch(obj client.Object, body string) {
	w.t.Helper()
	if err := w.admin.Patch(w.t.Context(), obj, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// says waits until the component's message contains a text.
func (w *world) says(text string) {
	w.t.Helper()
	testenv.Wait(w.t, w.admin, w.component(), text, func(p *product.Product) bool { return strings.Contains(p.Status.Message, text) })
}

func (w *world) ready(revision int64) {
	w.t.Helper()
	testenv.Wait(w.t, w.admin, w.component(), "Ready", func(p *product.Product) bool {
		return p.Status.State == component.StateReady && p.Status.AppliedGeneration == p.Generation && p.Status.Revision == revision
	})
}

// seen waits until Helm sees its release, or does not.
func (w *world) seen(version int, owner string) {
	w.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, version)}}
	testenv.Wait(w.t, w.admin, s, "the release to be that of "+owner, func(s *corev1.Secret) bool { return s.Labels["owner"] == owner })
}

// lists are the kinds of which all objects are compared.
func lists() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &appsv1.StatefulSetList{}, &batchv1.JobList{}, &corev1.ConfigMapList{}, &corev1.PersistentVolumeClaimList{},
		&corev1.PodList{}, &corev1.SecretList{}, &corev1.ServiceList{},
	}
}

// things returns all objects of the namespace, with their UIDs.
func (w *world) things() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, list := range lists() {
		if err := w.admin.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			w.t.Fatal(err)
		}
		var all struct {
			Items []metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(text, &all); err != nil {
			w.t.Fatal(err)
		}
		for _, o := range all.Items {
			if o.Name != "kube-root-ca.crt" {
				kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."), "List")
				out[kind+" "+o.Name] = string(o.UID)
			}
		}
	}
	return out
}

// same requires that nothing was lost, replaced or added, but for what is named.
func (w *world) same(when string, before map[string]string, but ...string) {
	w.t.Helper()
	now := w.things()
	except := func(thing, _ string) bool {
		return slices.ContainsFunc(but, func(text string) bool { return strings.Contains(thing, text) })
	}
	before = maps.Clone(before)
	maps.DeleteFunc(before, except)
	maps.DeleteFunc(now, except)
	if diff := cmp.Diff(before, now); diff != "" {
		w.t.Errorf("%s, objects with their UIDs (-before +after):\n%s", when, diff)
	}
}

func (w *world) get(obj client.Object, of string) {
	w.t.Helper()
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: of}, obj); err != nil {
		w.t.Fatal(err)
	}
}

// contents returns what must not change: templates of Pods, and what was drawn.
func (w *world) contents() []any {
	w.t.Helper()
	d, s, password, once, m := &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Secret{}, &corev1.Secret{}, &corev1.ConfigMap{}
	w.get(d, "web")
	w.get(s, "db")
	w.get(password, "password")
	w.get(once, "once")
	w.get(m, "settings")
	return []any{d.Spec.Template, s.Spec.Template, password.Data, once.Data, m.Data}
}

func (w *world) unchanged(when string, before []any) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.contents()); diff != "" {
		w.t.Errorf("%s (-before +after):\n%s", when, diff)
	}
}

// start starts an operator of a chart in a folder.
func (w *world) start(fsys fs.FS, o helm.Options) {
	w.t.Helper()
	g, err := helm.NewGenerator(fsys, ".", o)
	if err != nil {
		w.t.Fatal(err)
	}
	passes := operate(w.t, w.counted, w.namespace, g)
	go func() { // counts nothing
		for {
			select {
			case <-passes:
			case <-w.t.Context().Done():
				return
			}
		}
	}()
}

// TestTakeover: B-20 a release of Helm becomes a component and a release again, and no Pod restarts, no hook runs, and
// nothing is lost.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.install(map[string]any{"greeting": "hi"}); err != nil {
		t.Fatal("helm install:", err)
	}
	w.patch(&corev1.Secret{ObjectMeta: w.named("once")}, `{"stringData":{"password":"edited"}}`) // Helm does not write it again
	things, contents := w.things(), w.contents()

	w.start(os.DirFS(shop), helm.Options{})
	w.take("", `{"greeting": "hi"}`)
	w.says("belongs to the Helm release " + w.namespace + "/" + name + "; to take it over, set the annotation " + w.annotation() + ": unchanged on the component")
	w.same("without the annotation", things)
	w.patch(w.component(), `{"metadata":{"annotations":{"`+w.annotation()+`":"unchanged"}},"spec":{"objects":[{"greeting":"hey"}]}}`)
	w.says("has other values of greeting; to have it upgraded")
	w.unchanged("with other values", contents)
	w.patch(w.component(), `{"spec":{"objects":[{"greeting":"hi","replicas":1}]}}`)
	w.ready(1)
	w.same("taken over", things)
	w.unchanged("taken over", contents)
	if n := w.releases(); n != 0 {
		t.Errorf("Helm sees %d releases, want none", n)
	}
	for action, err := range map[string]error{"uninstall": w.uninstall(), "upgrade": w.upgrade(nil), "install": w.install(nil)} {
		if err == nil {
			t.Errorf("helm %s works although the release is a component", action)
		}
	}
	w.same("Helm did not find it", things)
	w.annotate(`"return"`)
	w.seen(1, "helm")
	if err := w.admin.Delete(t.Context(), w.component()); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, w.admin, w.component(), "the component to be gone")
	w.same("given back", things)
	w.unchanged("given back", contents)
	d := &appsv1.Deployment{}
	w.get(d, "web")
	for key := range d.Labels {
		if strings.HasPrefix(key, w.operator()) {
			t.Errorf("label %s is left", key)
		}
	}
	for key := range d.Annotations {
		if strings.HasPrefix(key, w.operator()) {
			t.Errorf("annotation %s is left", key)
		}
	}
	if n := w.releases(); n != 1 {
		t.Errorf("Helm sees %d releases, want 1", n)
	}
	if err := w.upgrade(map[string]any{"greeting": "good day"}); err != nil {
		t.Fatal("helm upgrade:", err)
	}
	m := &corev1.ConfigMap{}
	if w.get(m, "settings"); m.Data["greeting"] != "good day" {
		t.Errorf("after helm upgrade: %v", m.Data)
	}
	// The chart renders another Pod template of the Deployment each time.
	w.same("after helm upgrade", things, "Job migrate", "Pod migrate", "Pod web", "ReplicaSet ", "Secret sh.helm")
	if err := w.uninstall(); err != nil {
		t.Fatal("helm uninstall:", err)
	}
	// Helm keeps objects with the policy keep, the claims of a StatefulSet, and what its hooks created.
	w.left("helm uninstall", "Job migrate", "Job seed", "PersistentVolumeClaim data-db-0", "PersistentVolumeClaim kept", "Secret once")
}

// TestTakeoverOfPublicCharts: B-20 nothing of a release of a public chart changes when it is taken over, or given back.
func TestTakeoverOfPublicCharts(t *testing.T) {
	t.Parallel()
	for _, title := range []string{"pebble", "library", "order"} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.chart = fromModules()[title].place(t)
			values := installed()[title][1]
			given := map[string]any{}
			if err := json.Unmarshal(jsonOf(t, values), &given); err != nil {
				t.Fatal(err)
			}
			if err := w.install(given); err != nil {
				t.Fatal("helm install:", err)
			}
			things := w.things()
			w.start(os.DirFS(w.chart), helm.Options{})
			w.take("unchanged", string(jsonOf(t, values)))
			w.ready(1)
			w.seen(1, "trimtab")
			w.same("taken over", things)
			w.annotate(`"return"`)
			w.seen(1, "helm")
			if err := w.admin.Delete(t.Context(), w.component()); err != nil {
				t.Fatal(err)
			}
			testenv.Gone(t, w.admin, w.component(), "the component to be gone")
			w.same("given back", things)
			if err := w.upgrade(given); err != nil {
				t.Error("helm upgrade:", err)
			}
			w.same("after helm upgrade", things, "Secret sh.helm")
			if err := w.uninstall(); err != nil {
				t.Error("helm uninstall:", err)
			}
		})
	}
}

// left waits until nothing is in the namespace but the component and these.
func (w *world) left(after string, want ...string) {
	w.t.Helper()
	var got []string
	if !poll.Until(func() bool {
		got = slices.DeleteFunc(slices.Sorted(maps.Keys(w.things())), func(thing string) bool { return strings.HasPrefix(thing, "Pod ") }) // of Jobs
		return slices.Equal(got, want)
	}) {
		w.t.Errorf("after %s (-want +got):\n%s", after, cmp.Diff(want, got))
	}
}

// newer writes another version of the chart, which lacks a claim and a value, and returns its folder.
func newer(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(shop)); err != nil {
		t.Fatal(err)
	}
	for file, change := range map[string]func(string) string{
		"Chart.yaml": func(text string) string { return strings.Replace(text, "1.0.0", "1.1.0", 1) },
		"templates/all.yaml": func(text string) string {
			var kept []string
			for document := range strings.SplitSeq(text, "---\n") {
				if !strings.Contains(document, "PersistentVolumeClaim") || strings.Contains(document, "StatefulSet") {
					kept = append(kept, strings.ReplaceAll(document, "  greeting: {{ .Values.greeting }}\n", ""))
				}
			}
			return strings.Join(kept, "---\n")
		},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, file), []byte(change(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestTakeoverWithUpgrade: B-20 a release is taken over by an operator with another version of its chart, and the way
// back is closed.
func TestTakeoverWithUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.csa = true
	if err := w.install(nil); err != nil {
		t.Fatal("helm install:", err)
	}
	if err := w.upgrade(map[string]any{"greeting": "hi"}); err != nil {
		t.Fatal("helm upgrade:", err)
	}
	things := w.things()
	data := func(name string) map[string][]byte {
		t.Helper()
		s := &corev1.Secret{}
		w.get(s, name)
		return s.Data
	}
	once := data("once")

	w.start(os.DirFS(newer(t)), helm.Options{SkipCRDs: true}) // the other test has the definition
	w.take("unchanged", `{"greeting": "hi"}`)
	w.says("version 2 of the Helm release " + w.namespace + "/" + name + " has the chart shop-1.0.0, and the operator has shop-1.1.0; to have it upgraded when it is taken over, set the annotation ")
	w.same("refused", things)
	w.annotate(`"upgrade"`)
	w.ready(1)
	w.seen(1, "trimtab")
	testenv.Gone(t, w.admin, &corev1.PersistentVolumeClaim{ObjectMeta: w.named("archive")}, "what the chart does not have any more")
	w.same("taken over", things, "Job migrate", "Pod ", "ReplicaSet ", "PersistentVolumeClaim archive", "Secret "+name+"-random")
	m, d := &corev1.ConfigMap{}, &appsv1.Deployment{}
	w.get(m, "settings")
	w.get(d, "web")
	if diff := cmp.Diff(map[string]string{"installed": "false"}, m.Data); diff != "" {
		t.Errorf("what the chart does not set any more (-want +got):\n%s", diff)
	}
	if revision := d.Spec.Template.Annotations["revision"]; revision != "3" {
		t.Errorf("revision %s after version 2 of the release, want 3", revision)
	}
	if diff := cmp.Diff(once, data("once")); diff != "" {
		t.Errorf("a hook of the installation was written (-before +after):\n%s", diff)
	}
	migrate := w.things()["Job migrate"]
	if migrate == things["Job migrate"] {
		t.Error("the hook of upgrades did not run")
	}

	w.annotate(`null`)
	testenv.Gone(t, w.admin, &corev1.Secret{ObjectMeta: w.named("sh.helm.release.v1.demo.v2")}, "the release, without the annotation")
	w.ready(2)
	if w.get(m, "settings"); m.Labels["app.kubernetes.io/managed-by"] != "" || api.HelmReleaseOf(m.Annotations) != "" {
		t.Errorf("Helm's labels and annotations are left: %v, %v", m.Labels, m.Annotations)
	}
	if diff := cmp.Diff(once, data("once")); diff != "" {
		t.Errorf("a hook of the installation was written (-before +after):\n%s", diff)
	}
	if seed := w.things()["Job seed"]; seed != things["Job seed"] {
		t.Error("a hook of the installation ran again")
	}
	if err := w.admin.Delete(t.Context(), w.component()); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, w.admin, w.component(), "the component to be gone")
	w.left("the deletion", "Job seed", "PersistentVolumeClaim data-db-0", "PersistentVolumeClaim kept")
}

// annotate sets the annotation about the release to a value in JSON.
func (w *world) annotate(value string) {
	w.t.Helper()
	w.patch(w.component(), `{"metadata":{"annotations":{"`+w.annotation()+`":`+value+`}}}`)
}

func (w *world) named(of string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: of}
}
