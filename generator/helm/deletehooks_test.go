package helm_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// parting is a chart with hooks of deletions.
func parting() map[string]string {
	return map[string]string{
		"templates/plain.yaml": configMap("plain", ""),
		"templates/hooks.yaml": job("clean", "pre-delete", "") +
			configMap("for-clean", "  annotations: {helm.sh/hook: pre-delete, helm.sh/hook-weight: \"-5\", helm.sh/hook-delete-policy: hook-succeeded}") +
			job("both", "post-install,post-upgrade,pre-delete", "    helm.sh/hook-weight: \"5\"") +
			job("twice", "pre-delete,post-delete", "    helm.sh/hook-weight: \"6\""),
	}
}

// TestDeleteHooks: hooks of deletions run in Helm's order, and nothing is left.
func TestDeleteHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(parting())
	s.create(`{"a": 1}`)
	s.ready()
	want := []string{"apply a-delete-hooks", "apply plain", "apply both"}
	if diff := cmp.Diff(want, s.written("secrets", "configmaps", "jobs")); diff != "" {
		t.Errorf("the installation (-want +got):\n%s", diff)
	}
	s.requests.Reset()
	s.remove()
	want = []string{
		"apply for-clean", "apply clean", "delete both", "apply both", "apply twice", // both is another Job than that of the installation
		"delete both", "delete clean", "delete twice", "delete for-clean", "delete plain",
		"apply twice", "delete twice", "delete a-delete-hooks",
	}
	got := s.written("secrets", "configmaps", "jobs")
	if len(got) > 9 { // at the same time
		slices.Sort(got[5:10])
		slices.Sort(want[5:10])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the deletion (-want +got):\n%s", diff)
	}
	s.nothingLeft()
}

// TestDeleteHooksAreKilled: the operator is killed before and after each of its writes. Each hook runs once for the
// deletion, and nothing is left.
func TestDeleteHooksAreKilled(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	files := map[string]string{
		"templates/plain.yaml": configMap("plain", ""),
		"templates/hooks.yaml": job("both", "post-install,post-upgrade,pre-delete", "") + job("farewell", "post-delete", ""),
	}
	g, err := helm.NewGenerator(chartOf(files), "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := site{namespace: "parting", grace: -1}
	options := s.componentOptions()
	options.Name = "parting.helm.test"
	sweep := componenttest.Sweep[*product.Product]{
		Config: cfg, AddToScheme: product.AddToScheme, Renderer: helm.NewRenderer(g, valuesOf), Options: options,
		Versions: []*product.Product{withValues(`{"a": 1}`)},
		Prepare:  countRuns(3), // one of the installation, and two of the deletion
		Every:    5,            // odd, so that kills before and after a write alternate
	}
	if os.Getenv("TRIMTAB_DEEP") != "" {
		sweep.Every = 1
	}
	componenttest.CrashSweep(t, sweep)
}

// TestDeleteHookFails: nothing is deleted as long as a hook before has failed.
func TestDeleteHookFails(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *site){
		"and is deleted": func(t *testing.T, s *site) {
			t.Helper()
			failed := &batchv1.Job{ObjectMeta: s.named("clean")}
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(failed), failed); err != nil {
				t.Fatal(err)
			}
			if err := s.admin.Delete(t.Context(), failed.DeepCopy(), client.PropagationPolicy("Background")); err != nil {
				t.Fatal(err)
			}
			testenv.Wait(t, s.admin, &batchv1.Job{ObjectMeta: s.named("clean")}, "another Job", func(j *batchv1.Job) bool { return j.UID != failed.UID })
			s.end("clean", "Complete")
		},
		"and is skipped": func(t *testing.T, s *site) {
			t.Helper()
			s.patch(s.product(), `{"metadata":{"annotations":{"`+s.operator+`/skip-delete-hooks":"true"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.start(map[string]string{"templates/all.yaml": configMap("plain", "") + idle(job("clean", "pre-delete", ""))})
			s.create(`{"a": 1}`)
			s.ready()
			s.begin()
			s.says("pre-delete hooks: waiting for Job " + s.namespace + "/clean")
			s.end("clean", "Failed")
			p := s.says("pre-delete hooks: Job " + s.namespace + "/clean: it has failed")
			if !strings.Contains(p.Status.Message, "delete it to have it run again, or set "+s.operator+"/skip-delete-hooks") || p.Status.DeletionStage != "PreDelete" {
				t.Errorf("stage %q, message %q", p.Status.DeletionStage, p.Status.Message)
			}
			s.data("plain", "value", "1")
			then(t, s)
			testenv.Gone(t, s.admin, s.product(), "the component")
			s.nothingLeft()
		})
	}
}

// TestDeleteHooksWithoutRendering: what was stored last runs, whatever became of the chart and the component.
func TestDeleteHooksWithoutRendering(t *testing.T) {
	t.Parallel()
	files := parting()
	files["templates/plain.yaml"] += "{{ if eq (toString .Values.a) \"2\" }}{{ fail \"no\" }}{{ end }}\n"
	for name, c := range map[string]struct {
		why  string
		do   func(*testing.T, *site)
		says string // before somebody skips the hooks; empty if it goes on by itself
		runs []string
	}{
		"values that cannot be rendered": {
			why:  "a deletion renders nothing",
			do:   func(t *testing.T, s *site) { t.Helper(); s.update(`{"a": 2}`); s.says("no") },
			runs: []string{"apply clean", "apply both", "apply twice", "apply twice"},
		},
		"a chart without hooks of deletions": {
			why: "what is stored follows the chart",
			do: func(t *testing.T, s *site) {
				t.Helper()
				s.start(map[string]string{"templates/plain.yaml": configMap("plain", "")})
				testenv.Gone(t, s.admin, &corev1.Secret{ObjectMeta: s.named("a-delete-hooks")}, "what was stored")
				s.ready()
			},
		},
		"a Secret that somebody changed": {
			why: "who may write Secrets could have the operator create anything",
			do: func(t *testing.T, s *site) {
				t.Helper()
				s.stop()
				evil := `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"evil","annotations":{"` + s.operator + `/apply-on":"pre-delete"}}}]`
				s.patch(&corev1.Secret{ObjectMeta: s.named("a-delete-hooks")}, `{"data":{"objects":"`+packed(t, evil)+`"}}`)
			},
			says: "is not as the component has recorded it, so the delete hooks in it do not run; undo the change, or set ",
		},
		"a Secret that somebody deleted": {
			why: "they cannot run any more",
			do: func(t *testing.T, s *site) {
				t.Helper()
				s.stop()
				if err := s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: s.named("a-delete-hooks")}); err != nil {
					t.Fatal(err)
				}
			},
		},
		"a lost inventory": {
			why: "it is not known whether the Secret is what was stored",
			do: func(t *testing.T, s *site) {
				t.Helper()
				s.stop()
				if err := s.admin.Status().Patch(t.Context(), s.product(), client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.kinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Group: "batch", Version: "v1", Kind: "Job"}}
			s.start(files)
			s.create(`{"a": 1}`)
			s.ready()
			c.do(t, s)
			s.requests.Reset()
			s.begin()
			if !strings.Contains(name, "chart") {
				s.start(files)
			}
			if c.says != "" {
				s.says(c.says)
				s.patch(s.product(), `{"metadata":{"annotations":{"`+s.operator+`/skip-delete-hooks":"true"}}}`)
			}
			testenv.Gone(t, s.admin, s.product(), "the component")
			runs := slices.DeleteFunc(s.written("jobs"), func(w string) bool { return strings.HasPrefix(w, "delete") })
			if diff := cmp.Diff(strings.Join(c.runs, ", "), strings.Join(runs, ", ")); diff != "" {
				t.Errorf("hooks that ran (-want +got):\n%s\nwhy it matters: %s", diff, c.why)
			}
			s.nothingLeft()
		})
	}
}

// packed is a text as it is in a Secret with hooks.
func packed(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// TestDeleteHooksThatNeverWere: a component whose chart was never rendered is deleted without hooks, and so is one whose
// hooks are left out.
func TestDeleteHooksThatNeverWere(t *testing.T) {
	t.Parallel()
	t.Run("not rendered", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		files := parting()
		files["templates/plain.yaml"] = "{{ fail \"no\" }}"
		s.start(files)
		s.create(`{"a": 1}`)
		s.says("no")
		s.remove()
		if w := s.written("jobs", "secrets"); len(w) > 0 {
			t.Errorf("it was written: %v", w)
		}
	})
	t.Run("not stored", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		theirs := &corev1.Secret{ObjectMeta: s.named("a-delete-hooks")}
		if err := s.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		s.start(parting())
		s.create(`{"a": 1}`)
		s.says("Secret " + s.namespace + "/a-delete-hooks exists and has no owner")
		s.remove()
		if w := s.written("jobs", "configmaps"); len(w) > 0 {
			t.Errorf("it was written: %v", w)
		}
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
			t.Error(err)
		}
	})
	t.Run("left out", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.options.SkipDeleteHooks = true
		s.start(parting())
		s.create(`{"a": 1}`)
		s.ready()
		s.remove()
		if diff := cmp.Diff([]string{"apply both", "delete both"}, s.written("jobs", "secrets")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("too large", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		noise := make([]byte, 1<<20)
		random := rand.NewChaCha8([32]byte{})
		_, _ = random.Read(noise)
		s.start(map[string]string{"templates/all.yaml": strings.Replace(configMap("large", "  annotations: {helm.sh/hook: pre-delete}"), "{value", "{noise: "+base64.StdEncoding.EncodeToString(noise)+", value", 1)})
		s.create(`{"a": 1}`)
		s.says("and the Secret that stores them can have 1048576; leave some out or make them smaller")
		s.remove()
	})
}

// TestDeleteHooksOfTerminatingNamespace: where nothing can be created, the deletion does not wait for hooks.
func TestDeleteHooksOfTerminatingNamespace(t *testing.T) {
	t.Parallel()
	const skipped = "delete hooks are skipped, because their namespace or the Secret that has them is gone or being deleted; waiting for "
	for name, c := range map[string]struct {
		why, chart, place string
	}{
		"that of the component": {why: "the Secret is being deleted", chart: job("clean", "pre-delete", "")},
		"that of the hook": {
			why: "the Secret is there", place: "-other",
			chart: strings.Replace(job("clean", "pre-delete", ""), "  name:", "  namespace: \"{{ .Release.Namespace }}-other\"\n  name:", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			ns := &corev1.Namespace{}
			if ns.Name = s.namespace + c.place; c.place != "" {
				if err := s.admin.Create(t.Context(), ns.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			s.start(map[string]string{"templates/all.yaml": configMap("plain", "") + c.chart})
			s.create(`{"a": 1}`)
			s.ready()
			held := []client.Object{&corev1.ConfigMap{ObjectMeta: s.named("plain")}, &corev1.Secret{ObjectMeta: s.named("a-delete-hooks")}}
			other := &corev1.ConfigMap{}
			other.Namespace, other.Name = ns.Name, "theirs"
			if err := s.admin.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			for _, o := range append(held, other) {
				s.patch(o, `{"metadata":{"finalizers":["tests.trimtab.dev/hold"]}}`)
			}
			if err := s.admin.Delete(t.Context(), ns); err != nil {
				t.Fatal(err)
			}
			testenv.Wait(t, s.admin, &corev1.ConfigMap{ObjectMeta: other.ObjectMeta}, "being deleted", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
			if c.place != "" {
				s.begin()
			}
			if p := s.says(skipped); p.Status.DeletionStage != "Skipped" {
				t.Errorf("stage %s\nwhy it matters: %s", p.Status.DeletionStage, c.why)
			}
			for _, o := range append(held, other) {
				s.patch(o, `{"metadata":{"finalizers":null}}`)
			}
			testenv.Gone(t, s.admin, s.product(), "the component")
		})
	}
}

// TestDeleteHooksInANamespaceOfTheChart: it stays until the hooks have run, which need it, and goes then.
func TestDeleteHooksInANamespaceOfTheChart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	files := parting()
	files["templates/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{{ .Release.Namespace }}\"}\n"
	s.start(files)
	p := withValues(`{"a": 1}`)
	p.Namespace, p.Spec.Namespace = s.namespace, s.namespace+"-place"
	runJobs(t, s.admin, p.Spec.Namespace, nil)
	if err := s.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.ready()
	s.requests.Reset()
	s.remove()
	runs := slices.DeleteFunc(s.written("jobs"), func(w string) bool { return strings.HasPrefix(w, "delete") })
	if diff := cmp.Diff([]string{"apply clean", "apply both", "apply twice", "apply twice"}, runs); diff != "" {
		t.Errorf("hooks that ran (-want +got):\n%s", diff)
	}
	ns := &corev1.Namespace{}
	ns.Name = p.Spec.Namespace
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace: %v, want that it is gone", err)
	}
}

// TestKindsOfDeleteHooks: they and their Secret are among the kinds of a chart.
func TestKindsOfDeleteHooks(t *testing.T) {
	t.Parallel()
	files := map[string]string{"templates/all.yaml": job("clean", "pre-delete", "")}
	for skip, want := range map[bool][]schema.GroupVersionKind{
		false: {{Version: "v1", Kind: "Secret"}, {Group: "batch", Version: "v1", Kind: "Job"}},
		true:  nil,
	} {
		g, err := helm.NewGenerator(chartOf(files), "chart", helm.Options{SkipDeleteHooks: skip})
		if err != nil {
			t.Fatal(err)
		}
		got, err := g.Kinds()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("left out %v (-want +got):\n%s", skip, diff)
		}
	}
}

// begin has the component deleted.
func (s *site) begin() {
	s.t.Helper()
	if err := s.admin.Delete(s.t.Context(), s.product()); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes the component and waits until it is gone.
func (s *site) remove() {
	s.t.Helper()
	s.begin()
	testenv.Gone(s.t, s.admin, s.product(), "the component")
}

// nothingLeft checks that nothing of a component is left.
func (s *site) nothingLeft() {
	s.t.Helper()
	for _, kind := range []schema.GroupVersionKind{{Group: "batch", Version: "v1", Kind: "Job"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := s.admin.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			s.t.Fatal(err)
		}
		for _, o := range list.Items {
			if o.GetName() != "kube-root-ca.crt" && o.GetDeletionTimestamp() == nil {
				s.t.Errorf("left behind: %s %s", kind.Kind, o.GetName())
			}
		}
	}
}
