package helm_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// The tests with Helm itself are in test/charts. Here, a release is made by hand, so that it is the same in each run.

// stored is what Helm stores of a release of the chart with these files.
func stored(t testing.TB, files map[string]string, values string, change func(*release.Release)) []byte {
	t.Helper()
	fsys := chartOf(files)
	var chartFiles []*archive.BufferedFile
	for name, f := range fsys {
		chartFiles = append(chartFiles, &archive.BufferedFile{Name: strings.TrimPrefix(name, "chart/"), Data: f.Data})
	}
	c, err := loader.LoadFiles(chartFiles)
	if err != nil {
		t.Fatal(err)
	}
	rel := &release.Release{Version: 1, Chart: c, Info: &release.Info{Status: common.StatusDeployed}}
	if err := json.Unmarshal([]byte(values), &rel.Config); err != nil {
		t.Fatal(err)
	}
	g, err := helm.NewGenerator(fsys, "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := g.Render(t.Context(), helm.Release{Name: "a", Values: rel.Config})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := set.Annotated("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		annotations := o.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "/") || strings.HasPrefix(key, "trimtab.dev/") })
		o.SetAnnotations(annotations)
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if annotations[release.HookAnnotation] != "" {
			rel.Hooks = append(rel.Hooks, &release.Hook{Path: "hooks.yaml", Manifest: string(text)})
			continue
		}
		rel.Manifest += "---\n# Source: demo/templates/all.yaml\n" + string(text)
	}
	if change != nil {
		change(rel)
	}
	text, err := json.Marshal(rel)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// secretOf is the Secret in which Helm stores a release.
func secretOf(namespace string, version int, data []byte) *corev1.Secret {
	s := &corev1.Secret{Type: "helm.sh/release.v1", Data: map[string][]byte{"release": data}}
	s.Namespace, s.Name = namespace, fmt.Sprintf("sh.helm.release.v1.a.v%d", version)
	s.Labels = map[string]string{"owner": "helm", "name": "a", "status": "deployed", "version": fmt.Sprint(version)}
	return s
}

// TestReleaseIsRefused: what cannot be taken over says so, and nothing is written.
func TestReleaseIsRefused(t *testing.T) {
	t.Parallel()
	files := map[string]string{"values.yaml": "a: 1\nsub: {b: 2}\n", "templates/all.yaml": configMap("plain", "")}
	for name, test := range map[string]struct {
		why, annotation, values string
		change                  func(*release.Release)
		data                    string
		want                    string
	}{
		"another annotation": {"what it means is not known", "yes", `{}`, nil, "", `/helm-release is "yes"; it must be "unchanged", "upgrade" or "return"`},
		"another chart": {
			"its objects would change", "unchanged", `{}`, func(r *release.Release) { r.Chart.Metadata.Version = "0.9.0" }, "",
			`/a has the chart demo-0.9.0, and the operator has demo-1.0.0; to have it upgraded when it is taken over, set the annotation `,
		},
		"another template": {
			"charts in development keep their version", "unchanged", `{}`, func(r *release.Release) { r.Chart.Templates[0].Data = []byte("x") }, "",
			`has another chart demo-1.0.0, in which templates/all.yaml differs; to have`,
		},
		"other defaults": {
			"they are values, too", "unchanged", `{}`, func(r *release.Release) { r.Chart.Values["a"] = 3 }, "",
			`has another chart demo-1.0.0, in which values.yaml differs at a; to have`,
		},
		"other values": {"they may be secret, so they are not shown", "unchanged", `{"a": "SECRET", "sub": {"b": 3, "c": 1}}`, nil, "", `has other values of a, sub.b, sub.c; to have`},
		"not deployed": {
			"what is installed is not what is stored", "upgrade", `{}`, func(r *release.Release) { r.Info.Status = common.StatusPendingUpgrade }, "",
			`/a is not deployed, but pending-upgrade; mend it with Helm before it is taken over`,
		},
		"no release": {"the annotation may be wrong", "unchanged", `{}`, nil, "none", `no Secret has the type helm.sh/release.v1 and the label name=a; remove the annotation`},
		"nonsense":   {"somebody may have edited it", "unchanged", `{}`, nil, "AAAA", `which has version 1 of the Helm release, cannot be read: unexpected EOF; restore it, or remove the annotation `},
		"no data":    {"somebody may have copied it", "unchanged", `{}`, nil, "empty", `cannot be read: it has no data "release"; restore it, or remove the annotation `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			data := stored(t, files, `{}`, test.change)
			if test.data != "" {
				data = []byte(test.data)
			}
			if test.data == "empty" {
				data = nil
			}
			if test.data != "none" {
				if err := s.admin.Create(t.Context(), secretOf(s.namespace, 1, data)); err != nil {
					t.Fatal(err)
				}
			}
			s.start(files)
			s.createAs(test.annotation, test.values)
			p := s.says(test.want)
			if strings.Contains(p.Status.Message, "SECRET") {
				t.Errorf("a value is shown: %s", p.Status.Message)
			}
			if w := s.written("configmaps", "secrets"); len(w) > 0 {
				t.Errorf("it was written: %v\nwhy it is refused: %s", w, test.why)
			}
		})
	}
}

// createAs makes the component with the annotation about releases.
func (s *site) createAs(annotation, values string) {
	s.t.Helper()
	p := s.product()
	p.Annotations = map[string]string{s.operator + "/" + api.SuffixHelmRelease: annotation}
	p.Spec.Objects = append(p.Spec.Objects, raw(values))
	if err := s.admin.Create(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
}

// helmed is a chart with hooks, one of which Helm keeps and a component has.
func helmed() map[string]string {
	files := hooked()
	files["templates/once.yaml"] = configMap("once", "  annotations: {helm.sh/hook: pre-install}")
	return files
}

// TestTakeoverIsKilled: the operator is killed before and after each of its writes, while it takes over a release and
// gives it back. Objects of the release stay the same ones, and hooks run as if nothing had happened.
func TestTakeoverIsKilled(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	t.Run("unchanged", func(t *testing.T) {
		componenttest.CrashSweep(t, takeover(t, cfg, story{
			operator: "same.helm.test", annotation: "unchanged", every: 5, objects: []string{"once", "plain"}, left: []string{"once", "plain"}, jobs: []string{"early of Helm"},
		}))
	})
	t.Run("with an upgrade", func(t *testing.T) {
		componenttest.CrashSweep(t, takeover(t, cfg, story{
			operator: "other.helm.test", annotation: "upgrade", every: 9, objects: []string{"once", "old", "plain"}, left: []string{"once", "plain"},
			jobs: []string{"early", "next"}, // not first, which is one of installations, nor late, which is deleted when it has succeeded
			change: func(r *release.Release) {
				r.Chart.Metadata.Version = "0.9.0"
				r.Manifest += configMap("old", "") + configMap("lost", "")
			},
		}))
	})
}

// story is one of a release that a component takes over: with which annotation, which objects it has and which are left
// in the end, and which Jobs there are after the takeover.
type story struct {
	operator, annotation string
	every                int // odd, so that kills before and after a write alternate
	objects, left, jobs  []string
	change               func(*release.Release)
}

func takeover(t *testing.T, cfg *rest.Config, story story) componenttest.Sweep[*product.Product] {
	t.Helper()
	g, err := helm.NewGenerator(chartOf(helmed()), "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := site{namespace: story.operator, operator: story.operator, grace: -1}
	version := func(annotation, values string) *product.Product {
		p := withValues(values)
		p.Annotations = map[string]string{story.operator + "/" + api.SuffixHelmRelease: annotation}
		return p
	}
	data := stored(t, helmed(), `{"a": 1}`, story.change)
	every := story.every
	if os.Getenv("TRIMTAB_DEEP") != "" {
		every = 1
	}
	return componenttest.Sweep[*product.Product]{
		Config: cfg, AddToScheme: product.AddToScheme, Renderer: helm.NewRenderer(g, valuesOf), Options: s.componentOptions(),
		Versions: []*product.Product{version(story.annotation, `{"a": 1}`), version("return", `{"a": 1}`)},
		Every:    every,
		Prepare: func(t testing.TB, c client.WithWatch, namespace string) {
			t.Helper()
			released(t, c, namespace, data, story)
		},
		Then: func(t testing.TB, c client.WithWatch, namespace string, version int) {
			t.Helper()
			owner := "trimtab"
			if version == 1 {
				owner = "helm"
			}
			testenv.Wait(t, c, secretOf(namespace, 1, nil), "the release to be that of "+owner, func(s *corev1.Secret) bool {
				return s.Labels["owner"] == owner && bytes.Equal(s.Data["release"], data)
			})
			if version == 0 {
				story.ran(t, c, namespace)
			}
		},
	}
}

// ran checks which hooks ran in the takeover.
func (s story) ran(t testing.TB, c client.WithWatch, namespace string) {
	t.Helper()
	if slices.Contains(s.objects, "old") {
		testenv.Gone(t, c, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "old"}}, "what the chart does not have any more")
	}
	list := &batchv1.JobList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, j := range list.Items {
		names = append(names, j.Name+j.Annotations["of"])
	}
	if diff := cmp.Diff(s.jobs, names); diff != "" {
		t.Errorf("Jobs after the takeover (-want +got):\n%s", diff)
	}
}

// released makes what helm install makes, with a hook that has run, and checks in the end that what is left is Helm's.
func released(t testing.TB, c client.WithWatch, namespace string, data []byte, story story) {
	t.Helper()
	runJobs(t, c, namespace, nil)
	want := map[string]types.UID{}
	for _, name := range story.objects {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"value": "1"}}
		if name != "once" { // a hook
			m.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
			m.Annotations = map[string]string{api.AnnotationHelmReleaseName: "a", api.AnnotationHelmReleaseNamespace: namespace}
		}
		if err := c.Create(t.Context(), m, client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(story.left, name) {
			want[name] = m.UID
		}
	}
	early := &batchv1.Job{}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(job("early", "pre-install,pre-upgrade", ""), "---\n")), early); err != nil {
		t.Fatal(err)
	}
	early.Namespace, early.Annotations["of"] = namespace, " of Helm"
	for _, o := range []client.Object{early, secretOf(namespace, 1, data)} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Wait(t, c, early, "the hook to have run", func(j *batchv1.Job) bool { return j.Status.Succeeded == 1 })
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		list, got := &corev1.ConfigMapList{}, map[string]types.UID{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			t.Error(err)
		}
		for _, m := range list.Items {
			if api.HelmReleaseOf(m.Annotations) == namespace+"/a" || m.Name == "once" {
				got[m.Name] = m.UID
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what Helm gets back (-want +got):\n%s", diff)
		}
	})
}
