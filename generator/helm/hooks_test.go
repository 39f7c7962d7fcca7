package helm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// job is a hook that runs: runJobs completes it. The control plane would, after a second or more.
func job(name, events, more string) string {
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  annotations:
    helm.sh/hook: %s
%s
spec:
  managedBy: tests.trimtab.dev/run
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: a}]
`, name, events, more)
}

func configMap(name, more string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n%s\ndata: {value: \"{{ .Values.a }}\"}\n", name, more)
}

// hooked is a chart with hooks of each phase.
func hooked() map[string]string {
	return map[string]string{
		"templates/plain.yaml": configMap("plain", ""),
		"templates/hooks.yaml": job("late", "post-install,post-upgrade", `    helm.sh/hook-weight: "5"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded`) +
			job("early", "pre-install,pre-upgrade", "") +
			configMap("for-early", "  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\", helm.sh/hook-weight: \"-5\", helm.sh/hook-delete-policy: hook-succeeded}") +
			job("first", "post-install", "") +
			job("next", "pre-upgrade", "    helm.sh/hook-weight: \"1\"") +
			job("back", "post-rollback", "") + job("trial", "test", ""),
	}
}

// TestHooks: hooks run in Helm's order, once for each revision.
func TestHooks(t *testing.T) {
	t.Parallel()
	t.Run("B-28 once for each revision", hooksRunOnce)
	for _, events := range []string{"pre-install,pre-upgrade", "pre-install"} {
		t.Run("one that fails, of "+events, func(t *testing.T) { failedHook(t, events) })
	}
}

func hooksRunOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.requeue = 20 * time.Millisecond
	s.start(hooked())
	s.create(`{"a": 1}`)
	s.ready()
	creations := func() []string { // deletions are those of hooks that succeeded
		return slices.DeleteFunc(s.written("configmaps", "jobs"), func(w string) bool { return strings.HasPrefix(w, "delete") })
	}
	want := []string{"apply for-early", "apply early", "apply plain", "apply first", "apply late"}
	if diff := cmp.Diff(want, creations()); diff != "" {
		t.Errorf("the installation (-want +got):\n%s", diff)
	}
	gone := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				t.Errorf("%s: %v, want that it is gone", o.GetName(), err)
			}
		}
	}
	late, early := &batchv1.Job{ObjectMeta: s.named("late")}, &batchv1.Job{ObjectMeta: s.named("early")}
	gone(late, &corev1.ConfigMap{ObjectMeta: s.named("for-early")})
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(early), early); err != nil {
		t.Fatal(err)
	}

	s.requests.Reset()
	s.rests() // passes of the timer
	s.start(hooked())
	s.passes("2")
	s.rests()
	if w := s.written("configmaps", "jobs"); len(w) > 0 {
		t.Errorf("passes and a restart wrote %v", w)
	}
	if err := s.admin.Delete(t.Context(), early.DeepCopy(), client.PropagationPolicy("Background")); err != nil {
		t.Fatal(err)
	}
	testenv.Gone(t, s.admin, early.DeepCopy(), "a Job that somebody deletes")
	s.passes("3")
	s.ready()
	if w := s.written("jobs"); len(w) > 0 {
		t.Errorf("a Job that had ended was written after somebody had deleted it: %v", w)
	}

	s.requests.Reset()
	s.update(`{"a": 2}`)
	s.data("plain", "value", "2")
	s.ready()
	want = []string{"apply for-early", "apply early", "apply next", "apply plain", "apply late"}
	if diff := cmp.Diff(want, creations()); diff != "" {
		t.Errorf("the upgrade (-want +got):\n%s", diff)
	}
	gone(late, &corev1.ConfigMap{ObjectMeta: s.named("for-early")})
	testenv.Gone(t, s.admin, &batchv1.Job{ObjectMeta: s.named("first")}, "a hook of the installation alone")
	again := &batchv1.Job{ObjectMeta: s.named("early")}
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil || again.UID == early.UID {
		t.Errorf("the hook of the upgrade: %v, UID %s, before %s", err, again.UID, early.UID)
	}

	more := hooked()
	more["templates/more.yaml"] = job("added-{{ .Release.Revision }}", "pre-install", "")
	s.requests.Reset()
	s.start(more)
	testenv.Wait(t, s.admin, s.product(), "another chart", func(p *product.Product) bool { return p.Status.Revision == 3 })
	s.ready()
	want = []string{"apply for-early", "apply early", "apply next", "apply late"}
	if diff := cmp.Diff(want, creations()); diff != "" {
		t.Errorf("the upgrade to a chart with one more hook of installations (-want +got):\n%s", diff)
	}
}

// idle returns a Job that nobody runs: the test writes its status.
func idle(job string) string {
	return strings.Replace(job, "tests.trimtab.dev/run", "tests.trimtab.dev/nobody", 1)
}

// runJobs completes the Jobs of a namespace until the test ends, and calls seen with each that it sees.
func runJobs(t testing.TB, c client.WithWatch, namespace string, seen func(*batchv1.Job)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w, err := c.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for e := range w.ResultChan() {
			j, ok := e.Object.(*batchv1.Job)
			if !ok {
				continue
			}
			if seen != nil {
				seen(j)
			}
			if j.Status.CompletionTime != nil || j.DeletionTimestamp != nil || j.Spec.ManagedBy == nil || *j.Spec.ManagedBy != "tests.trimtab.dev/run" {
				continue
			}
			if err := endJob(ctx, c, j.DeepCopy(), "Complete"); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				t.Errorf("complete the Job %s: %v", j.Name, err)
			}
		}
	})
	t.Cleanup(func() {
		w.Stop()
		cancel()
		done.Wait()
	})
}

// end gives a Job that nobody runs a condition: Failed or Complete.
func (s *site) end(name, condition string) {
	s.t.Helper()
	if err := endJob(s.t.Context(), s.admin, &batchv1.Job{ObjectMeta: s.named(name)}, condition); err != nil {
		s.t.Fatal(err)
	}
}

func endJob(ctx context.Context, c client.Client, j *batchv1.Job, condition string) error {
	const at = `"status":"True","lastTransitionTime":"2026-01-02T03:05:05Z"`
	body := `{"status":{"startTime":"2026-01-02T03:04:05Z","failed":1,"conditions":[{"type":"FailureTarget","message":"no","reason":"Bad",` + at + `},{"type":"Failed","message":"no","reason":"Bad",` + at + `}]}}`
	if condition == "Complete" {
		body = `{"status":{"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:05:05Z","succeeded":1,"conditions":[{"type":"SuccessCriteriaMet",` + at + `},{"type":"Complete",` + at + `}]}}`
	}
	return c.Status().Patch(ctx, j, client.RawPatch(types.MergePatchType, []byte(body)))
}

// failedHook: what comes after a hook that fails is not done, and another revision runs it again.
func failedHook(t *testing.T, events string) {
	t.Helper()
	t.Parallel()
	s := newSite(t)
	s.start(map[string]string{"templates/all.yaml": configMap("plain", "") + idle(job("early", events, ""))})
	s.create(`{"a": 1}`)
	s.says("waiting for Job " + s.namespace + "/early")
	s.end("early", "Failed")
	p := s.says("Job " + s.namespace + "/early: it has failed")
	if p.Status.State != "Error" {
		t.Errorf("state %s, want Error", p.Status.State)
	}
	failed := &batchv1.Job{ObjectMeta: s.named("early")}
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(failed), failed); err != nil {
		t.Fatal(err)
	}
	plain := &corev1.ConfigMap{ObjectMeta: s.named("plain")}
	if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(plain), plain); !apierrors.IsNotFound(err) {
		t.Errorf("what comes after the hook: %v, want that it does not exist", err)
	}
	s.update(`{"a": 2}`)
	testenv.Wait(t, s.admin, failed.DeepCopy(), "the hook of another revision", func(j *batchv1.Job) bool { return j.UID != failed.UID })
	s.end("early", "Complete")
	s.ready()
	s.data("plain", "value", "2")
}

// TestGolden: without a cluster, a component is rendered as its installation.
func TestGolden(t *testing.T) {
	t.Parallel()
	g, err := helm.NewGenerator(chartOf(hooked()), "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := withValues(`{"a": 1}`)
	p.Namespace = "shop"
	componenttest.Golden(t, helm.NewRenderer(g, valuesOf), p, "testdata/hooked.yaml")
}

// TestHooksAreKilled: the operator is killed before and after each of its writes, while it installs and upgrades a chart
// with hooks. Each hook runs once for each revision.
func TestHooksAreKilled(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, product.CRDs)
	g, err := helm.NewGenerator(chartOf(hooked()), "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := site{namespace: "sweep", grace: -1}
	options := s.componentOptions()
	options.Name = "hooks.helm.test"
	componenttest.CrashSweep(t, componenttest.Sweep[*product.Product]{
		Config: cfg, AddToScheme: product.AddToScheme, Renderer: helm.NewRenderer(g, valuesOf), Options: options,
		Versions: []*product.Product{withValues(`{"a": 1}`), withValues(`{"a": 2}`)},
		Prepare:  countRuns(6),
		Every:    5, // odd, so that kills before and after a write alternate
	})
}

func withValues(values string) *product.Product {
	p := &product.Product{}
	p.Name = "a"
	p.Spec.Objects = append(p.Spec.Objects, raw(values))
	return p
}

// countRuns runs Jobs, and checks that no Job of a namespace is created twice for a revision or for the deletion, and that so many Jobs
// run.
func countRuns(want int) func(testing.TB, client.WithWatch, string) {
	return func(t testing.TB, c client.WithWatch, namespace string) {
		t.Helper()
		runs := map[string][]types.UID{}
		t.Cleanup(func() { // when no Job is seen any more
			for key, uids := range runs {
				if len(uids) > 1 {
					t.Errorf("%s ran %d times", key, len(uids))
				}
			}
			if len(runs) < want {
				t.Errorf("%d Jobs ran, want %d", len(runs), want)
			}
		})
		runJobs(t, c, namespace, func(j *batchv1.Job) {
			key := j.Name + " of revision " + j.Annotations["trimtab.dev/revision-digest"] + j.Annotations["parting.helm.test/apply-on"]
			if !slices.Contains(runs[key], j.UID) {
				runs[key] = append(runs[key], j.UID)
			}
		})
	}
}
