package external_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// needy are things of which each needs the same object.
type needy struct {
	named
	external.Dependency
}

func (n needy) DependsOn(*thing.Thing) []external.Dependency {
	return []external.Dependency{n.Dependency}
}

// needing starts an operator of things of which each needs d.
func needing(t *testing.T, d external.Dependency) *operatorTest {
	t.Helper()
	return newOperatorTest(t, needy{Dependency: d})
}

// make creates an object of any kind in the test's namespace.
func (w *operatorTest) make(obj client.Object) {
	w.t.Helper()
	obj.SetNamespace(w.namespace)
	if err := w.admin.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// reports sets the status of an object, as its controller would.
func (w *operatorTest) reports(obj client.Object, status string) {
	w.t.Helper()
	if err := w.admin.Status().Patch(w.t.Context(), obj, mergePatch([]byte(`{"status":`+status+`}`))); err != nil {
		w.t.Fatal(err)
	}
}

func podTemplate(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "db", Image: "db"}}},
	}
}

// claim is one that nobody binds: its class does not exist.
func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new("nobody.example.org"),
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

func untyped(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

// TestDependencyWithoutReady: what has no condition Ready is judged by kstatus.
func TestDependencyWithoutReady(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"a claim": &corev1.PersistentVolumeClaim{}, "a claim without its Go type": untyped("v1", "PersistentVolumeClaim"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := needing(t, external.Dependency{To: kind, Name: "db"})
			w.create()
			w.pending("a", "db: it does not exist")
			c := claim()
			w.make(c)
			w.pending("a", "PersistentVolumeClaim "+w.namespace+"/db: it is not ready")
			w.reports(c, `{"phase":"Bound"}`)
			w.ready()
			w.reports(c, `{"phase":"Lost"}`)
			w.pending("a", "db: it has failed")
		})
	}
	t.Run("a Deployment", func(t *testing.T) { // its controller runs
		t.Parallel()
		w := needing(t, external.Dependency{To: &appsv1.Deployment{}, Name: "db"})
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: podTemplate(corev1.RestartPolicyAlways),
		}}
		d.Spec.Template.Spec.NodeSelector = map[string]string{"nowhere": "true"}
		w.make(d)
		w.create()
		w.pending("a", "Deployment "+w.namespace+"/db: it is not ready")
		for _, replicas := range []string{"0", "1"} {
			if err := w.admin.Patch(t.Context(), d, mergePatch([]byte(`{"spec":{"replicas":`+replicas+`}}`))); err != nil {
				t.Fatal(err)
			}
			if replicas == "0" {
				w.ready()
			}
		}
		w.pending("a", "db: it is not ready")
	})
	t.Run("a Job", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &batchv1.Job{}, Name: "db"})
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: batchv1.JobSpec{
			ManagedBy: new("example.org/test"), Template: podTemplate(corev1.RestartPolicyNever),
		}}
		w.make(j)
		w.create()
		w.pending("a", "Job "+w.namespace+"/db: it is not ready")
		since := `"lastTransitionTime":"2026-01-02T12:00:00Z"`
		w.reports(j, `{"startTime":"2026-01-02T12:00:00Z","conditions":[{"type":"FailureTarget","status":"True",`+since+`},{"type":"Failed","status":"True",`+since+`}]}`)
		w.pending("a", "db: it has failed")
	})
	t.Run("a ConfigMap is there", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &corev1.ConfigMap{}, Name: "db"})
		w.create()
		w.pending("a", "ConfigMap "+w.namespace+"/db: it does not exist")
		w.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
		w.ready()
	})
	t.Run("a kind without namespaces", func(t *testing.T) {
		t.Parallel()
		class := "class-" + strings.ToLower(fmt.Sprintf("%x", time.Now().UnixNano()))
		w := needing(t, external.Dependency{To: untyped("scheduling.k8s.io/v1", "PriorityClass"), Name: class})
		w.create()
		w.pending("a", "PriorityClass "+class+": it does not exist")
		u := untyped("scheduling.k8s.io/v1", "PriorityClass")
		u.SetName(class)
		u.Object["value"] = int64(1)
		if err := w.admin.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		w.ready()
		if err := w.admin.Delete(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		w.pending("a", class+": it does not exist")
	})
}

// TestDependencyJudged: the author can say when an object of any kind is ready.
func TestDependencyJudged(t *testing.T) {
	t.Run("E1-08 any object type works with a success function", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &corev1.ConfigMap{}, Name: "db", Ready: func(to client.Object) (bool, string) {
			c, ok := to.(*corev1.ConfigMap)
			return ok && c.Data["url"] != "", "has no key url"
		}})
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
		w.make(c)
		w.create()
		got := w.pending("a", "ConfigMap "+w.namespace+"/db: it has no key url")
		if is(got, "Failed", "True") || w.cloud.count("POST") != 0 {
			t.Errorf("conditions %+v, calls %v", got.Status.Conditions, w.cloud.calls(true))
		}
		if err := w.admin.Patch(t.Context(), c, mergePatch([]byte(`{"data":{"url":"x"}}`))); err != nil {
			t.Fatal(err)
		}
		w.ready()
		if err := w.admin.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.pending("a", "db: it does not exist")
	})
	t.Run("without a reason", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &corev1.ConfigMap{}, Name: "db", Ready: func(client.Object) (bool, string) { return false, "" }})
		w.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
		w.create()
		w.pending("a", "db: it is not ready")
	})
	t.Run("a panic is reported", func(t *testing.T) {
		t.Parallel()
		w := needing(t, external.Dependency{To: &corev1.ConfigMap{}, Name: "db", Ready: func(client.Object) (bool, string) { panic("nil map") }})
		w.make(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db"}})
		w.create()
		w.await("the panic to be reported", func(o *thing.Thing) bool {
			return strings.Contains(condition(o, "Ready").Message, "panicked in Dependency.Ready")
		})
	})
}

// TestDependencyOutOfSight: no cache has a namespace that is not watched.
func TestDependencyOutOfSight(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, nil)
	other := testenv.Namespace(t, w.cfg)
	w.driver = needy{Dependency: external.Dependency{To: &thing.Thing{}, Namespace: other, Name: "b"}}
	w.terms.Namespaces = []string{w.namespace}
	w.start()
	w.create()
	got := w.pending("a", "Thing "+other+"/b: it is in namespace "+other+", which this operator does not watch; add "+other+" to --watch-namespaces")
	if is(got, "Failed", "True") {
		t.Errorf("conditions %+v", got.Status.Conditions)
	}
	w.quiet(300 * time.Millisecond)
	w.delete()
	w.gone()
}
