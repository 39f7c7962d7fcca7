package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// migration is a Job that no controller runs: the test writes its status. ttl is its
// spec.ttlSecondsAfterFinished if there is one.
func migration(schema string, ttl ...int32) *batchv1.Job {
	j := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "migrate"},
		Spec: batchv1.JobSpec{ManagedBy: new("tests.trimtab.dev/nobody"), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "a", Image: "a", Args: []string{schema}}},
		}}},
	}
	if len(ttl) > 0 {
		j.Spec.TTLSecondsAfterFinished = &ttl[0]
	}
	return j
}

const (
	jobCompleted = `{"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:05:05Z","succeeded":1,"conditions":[
		{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-02T03:05:05Z"},
		{"type":"Complete","status":"True","lastTransitionTime":"2026-01-02T03:05:05Z"}]}`
	jobFailed = `{"startTime":"2026-01-02T03:04:05Z","failed":1,"conditions":[
		{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","message":"too many failures","lastTransitionTime":"2026-01-02T03:05:05Z"},
		{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"too many failures","lastTransitionTime":"2026-01-02T03:05:05Z"}]}`
)

// TestEnded: what has ended by itself is done for its manifest.
func TestEnded(t *testing.T) {
	t.Parallel()
	t.Run("a Job that is deleted after it has finished", expiringJob)
	t.Run("a Job that a user deletes", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		job := b.in(object("batch/v1", "Job", "migrate", nil))
		b.create(migration("1"))
		b.waiting("Job " + b.namespace + "/migrate")
		first := b.exists(job)
		b.drop(b.in(object("batch/v1", "Job", "migrate", nil)))
		again := testenv.Wait(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "it had not finished: created again",
			func(o *unstructured.Unstructured) bool { return o.GetUID() != first.GetUID() })
		b.status(job, jobCompleted)
		if p := phase(b.ready(), "migrate"); p != api.PhaseCompleted {
			t.Errorf("phase %s, want Completed", p)
		}
		b.drop(again)
		b.staysEnded("migrate")
		b.stop()
		b.start()
		b.staysEnded("migrate")
	})
	t.Run("a Job that has failed", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		job := b.in(object("batch/v1", "Job", "migrate", nil))
		b.create(migration("1", 0))
		b.waiting("Job " + b.namespace + "/migrate")
		failed := b.exists(job)
		b.status(job, jobFailed)
		b.failed("Job "+b.namespace+"/migrate", "has failed: too many failures")
		b.fence()
		if now := b.exists(job); now.GetUID() != failed.GetUID() {
			t.Error("a failed Job was not left as it is")
		}
		b.drop(failed) // the user has it tried again
		testenv.Wait(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "created again",
			func(o *unstructured.Unstructured) bool { return o.GetUID() != failed.GetUID() })
	})
	t.Run("a Pod that has succeeded", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(oncePod("1"))
		b.waiting("Pod " + b.namespace + "/once")
		b.status(object("v1", "Pod", "once", nil), `{"phase":"Succeeded"}`)
		b.ready()
		b.drop(b.in(object("v1", "Pod", "once", nil)))
		b.staysEnded("once")
	})
}

// oncePod is a Pod that no kubelet runs: the test writes its status.
func oncePod(arg string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, SchedulerName: "nobody",
			Containers: []corev1.Container{{Name: "a", Image: "a", Args: []string{arg}}}, AutomountServiceAccountToken: new(false),
		},
	}
}

// TestPurgedOnce: what has ended and is purged then is neither created again nor waited for, until its manifest changes.
func TestPurgedOnce(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why      string
		manifest func(arg string) client.Object
		ended    string
	}{
		"a Job":              {"purge-order deletes what has completed", func(arg string) client.Object { return migration(arg) }, jobCompleted},
		"a Job that expires": {"nobody else is to delete it, whatever its manifest says", func(arg string) client.Object { return migration(arg, 0) }, jobCompleted},
		"a Pod":              {"the same for what has succeeded", func(arg string) client.Object { return oncePod(arg) }, `{"phase":"Succeeded"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			set := func(arg string) []client.Object {
				o := tt.manifest(arg)
				o.SetAnnotations(map[string]string{b.key("purge-order"): "0"})
				return []client.Object{o, configMap("later", "1", b.key("apply-order"), "1")}
			}
			o := tt.manifest("")
			kind := o.GetObjectKind().GroupVersionKind()
			live := func() *unstructured.Unstructured {
				return b.in(object(kind.GroupVersion().String(), kind.Kind, o.GetName(), nil))
			}
			title := kind.Kind + " " + b.namespace + "/" + o.GetName()
			b.create(set("1")...)
			b.waiting(title)
			first := b.exists(live())
			b.status(live(), tt.ended)
			testenv.Gone(t, b.admin, live(), tt.why)
			b.ready()
			b.live("later")
			b.staysEnded(o.GetName())
			b.stop()
			b.start()
			b.staysEnded(o.GetName())

			b.change(set("2")...)
			testenv.Wait(t, b.admin, live(), "another manifest, another object", func(o *unstructured.Unstructured) bool { return o.GetUID() != first.GetUID() })
			b.waiting(title)
			b.status(live(), tt.ended)
			testenv.Gone(t, b.admin, live(), "it ended again")
			b.staysEnded(o.GetName())
			b.delete()
			b.gone()
		})
	}
}

// TestPurgedLater: what has ended and waits for the end of its wave is done, whoever deletes it before.
func TestPurgedLater(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	job := func(arg string) *batchv1.Job {
		j := migration(arg)
		j.Annotations = map[string]string{b.key("purge-order"): "0"}
		return j
	}
	live := func() *unstructured.Unstructured { return b.in(object("batch/v1", "Job", "migrate", nil)) }
	b.create(job("1"), task("slow"))
	b.await("created", func(o *bundle.Bundle) bool {
		return phase(o, "migrate") == api.PhaseUpdating || phase(o, "migrate") == api.PhaseCreating
	})
	b.status(live(), jobCompleted)
	b.await("recorded", func(o *bundle.Bundle) bool { return phase(o, "migrate") == api.PhaseCompleting })
	b.waiting("Task " + b.namespace + "/slow")
	b.exists(live()) // it is purged with the wave, not before
	b.drop(live())
	b.await("known to be gone", func(o *bundle.Bundle) bool { return phase(o, "migrate") == api.PhaseCompleted })
	b.stop()
	b.start()
	b.fence()
	b.absent(live())
	b.finish("slow", true)
	b.staysEnded("migrate")
	if n := len(b.requests.Writes("jobs", b.namespace, "migrate")); n != 0 {
		t.Errorf("%d writes of the Job", n)
	}
	b.change(job("2"), task("slow"))
	testenv.Wait(t, b.admin, live(), "another manifest, another Job", func(*unstructured.Unstructured) bool { return true })
	b.status(live(), jobCompleted)
	testenv.Gone(t, b.admin, live(), "all else is ready")
	b.staysEnded("migrate")
}

// staysEnded checks that a dependent that has ended is gone, that nothing is written because of that, and that the
// component is ready.
func (b *bench) staysEnded(name string) {
	b.t.Helper()
	b.fence()
	b.requests.Reset()
	b.fence()
	o := b.ready()
	if p := phase(o, name); p != api.PhaseCompleted {
		b.t.Errorf("phase %s, want Completed", p)
	}
	sent := b.sent()
	reads := slices.DeleteFunc(sent.Reads, func(r string) bool { return strings.HasPrefix(r, "get bundles ") }) // a copy of the component may be old
	if sent.Dependents != 0 || len(reads) != 0 {
		b.t.Errorf("it has ended and is gone: %s", sent)
	}
}

// expiringJob: the Job gets its ttlSecondsAfterFinished when it is recorded as completed.
func expiringJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	job := b.in(object("batch/v1", "Job", "migrate", nil))
	later := configMap("later", "1", b.key("apply-order"), "1")
	b.create(migration("1", 0), later)
	b.waiting("Job " + b.namespace + "/migrate")
	first := b.exists(job)
	b.status(job, jobCompleted)
	b.ready()
	testenv.Gone(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "its time is over")
	b.await("recorded", func(o *bundle.Bundle) bool { return phase(o, "migrate") == api.PhaseCompleted })
	if n := len(b.requests.Writes("jobs", b.namespace, "migrate")); n != 2 {
		t.Errorf("%d writes of the Job, want its creation and its ttlSecondsAfterFinished", n)
	}
	b.staysEnded("migrate")

	b.change(migration("2", 0), later)
	testenv.Wait(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "another manifest, another Job",
		func(o *unstructured.Unstructured) bool { return o.GetUID() != first.GetUID() })
	b.status(job, jobCompleted)
	b.ready()
	testenv.Gone(t, b.admin, b.in(object("batch/v1", "Job", "migrate", nil)), "its time is over again")
	b.staysEnded("migrate")
	b.delete()
	b.gone()
}

// jobs runs Jobs: each is completed as soon as it exists.
type jobs struct {
	mu  sync.Mutex
	ran map[string][]types.UID // by namespace and schema
}

// run completes the Jobs of a namespace until the test ends.
func (j *jobs) run(t testing.TB, c client.WithWatch, namespace string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range w.ResultChan() {
			job, is := event.Object.(*batchv1.Job)
			if !is || job.Status.CompletionTime != nil || job.DeletionTimestamp != nil {
				continue
			}
			err := c.Status().Patch(ctx, job.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":`+jobCompleted+`}`)))
			if err != nil {
				if ctx.Err() == nil && client.IgnoreNotFound(err) != nil {
					t.Errorf("complete the Job: %v", err)
				}
				continue
			}
			j.note(namespace+"/"+job.Spec.Template.Spec.Containers[0].Args[0], job.UID)
		}
	})
	t.Cleanup(func() {
		w.Stop()
		cancel()
		done.Wait()
	})
}

func (j *jobs) note(of string, uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.ran[of], uid) {
		j.ran[of] = append(j.ran[of], uid)
	}
}

func (j *jobs) count(of string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ran[of])
}

// TestEndedSweep: a Job that is deleted as soon as it has finished runs once for each manifest, whenever the
// operator is killed.
func TestEndedSweep(t *testing.T) {
	t.Parallel()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, bundle.CRDs)
	const name = "ended.op.test"
	b := &bench{t: t}
	of := func(schema string) *bundle.Bundle {
		c := &bundle.Bundle{}
		c.Name = "a"
		c.Spec.Objects = b.raw(migration(schema, 0), configMap("after", schema, name+"/apply-order", "1"))
		return c
	}
	played := &jobs{ran: map[string][]types.UID{}}
	componenttest.CrashSweep(t, componenttest.Sweep[*bundle.Bundle]{
		Config: cfg, AddToScheme: bundle.AddToScheme, Renderer: component.RenderFunc[*bundle.Bundle](render),
		Options: options{Name: name, Loop: loop.Options[*bundle.Bundle]{
			Retry: loop.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		}},
		Versions: []*bundle.Bundle{of("1"), of("2")},
		Every:    killsPlayed(),
		Prepare: func(t testing.TB, c client.WithWatch, namespace string) {
			t.Helper()
			played.run(t, c, namespace)
		},
		Then: func(t testing.TB, c client.WithWatch, namespace string, version int) {
			t.Helper()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "migrate"}}
			testenv.Gone(t, c, job, "it has completed")
			if n := played.count(fmt.Sprintf("%s/%d", namespace, version+1)); n != 1 {
				t.Errorf("the Job of version %d ran %d times", version+1, n)
			}
		},
	})
}
