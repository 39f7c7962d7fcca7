package looptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Sweep is the life of an object for [CrashSweep]: it is created, updated and deleted.
type Sweep struct {
	// New begins a run. Required.
	New func() Subject
	// Cluster is the cluster of a run. Wrap and Lags are those of its processes.
	Cluster Cluster
	// Versions are the object as it is created and then updated, each time when no pass is due within Patience. At last it
	// is deleted. Only their spec, labels and annotations count after the first. Required.
	Versions []client.Object
	// Ignore removes from an object what may differ in each run, such as a time or a random name. The record of package
	// external is not compared anyway: compare the resources by [Subject]. Nil removes nothing.
	Ignore func(*unstructured.Unstructured)
	// Patience is how long a process may wait to try again. Zero means one minute, of simulated time.
	Patience time.Duration
}

// Subject is what is run.
type Subject struct {
	// Process makes the controller of a process, with all that the process remembers. It is called again after a kill.
	// Required.
	Process func() Controller
	// External returns what the controller has made outside of the cluster, by name with its contents. It must be as in
	// the undisturbed run in the end. Nil means that there is nothing.
	External func() map[string]string
}

// CrashSweep plays the life of an object once undisturbed, and then twice for each write of the controller: there the
// process is killed, once before the API server gets the request and once after it has carried it out, and another one is
// started. At the end of each version, and after the deletion, the cluster must have the objects of the undisturbed run
// with the same contents, and so must what is outside of it.
//
// It is an error if the controller fails in the undisturbed run, or the object is left there.
//
// The runs are subtests. They take no time but that of the processor; see [Run].
func CrashSweep(t *testing.T, s Sweep) {
	t.Helper()
	var quiet life
	t.Run("undisturbed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			quiet = s.play(t, Fault{Nth: -1})
			quiet.check(t)
		})
	})
	if t.Failed() {
		return
	}
	for n, write := range quiet.writes {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("killed %s write %d, %s", map[bool]string{false: "before", true: "after"}[after], n+1, write), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { s.play(t, Fault{Nth: n + 1, After: after, Kill: true}).compare(t, quiet) })
			})
		}
	}
}

// life is what a run came to.
type life struct {
	// writes are those of the undisturbed run, without their bodies.
	writes []string
	stages []map[string]string
	// failures are the last passes of versions that failed, and that the object is left.
	failures []string
	// killed is the write at which the process was killed.
	killed string
}

// check reports what makes an undisturbed run useless.
func (l life) check(t testing.TB) {
	t.Helper()
	for _, failure := range l.failures {
		t.Errorf("undisturbed, %s; the sweep needs a controller that succeeds", failure)
	}
	if len(l.writes) == 0 {
		t.Error("the controller wrote nothing, so there is nothing to kill it at")
	}
}

func (l life) compare(t testing.TB, quiet life) {
	t.Helper()
	if l.killed == "" {
		t.Error("the process was not killed, because it made fewer writes than undisturbed; the sweep needs a controller that does the same each time")
	}
	for _, failure := range l.failures {
		t.Errorf("killed at %q, %s", l.killed, failure)
	}
	for i, stage := range l.stages {
		when := fmt.Sprintf("after version %d", i+1)
		if i == len(l.stages)-1 {
			when = "after the deletion"
		}
		if diff := cmp.Diff(quiet.stages[i], stage); diff != "" {
			t.Errorf("killed at %q: what there is %s (-undisturbed +killed):\n%s", l.killed, when, diff)
		}
	}
}

// play plays the life with one fault.
func (s Sweep) play(t testing.TB, fault Fault) life {
	t.Helper()
	subject, injector := s.New(), Inject(fault)
	cluster := s.Cluster
	wraps := cluster.Wrap
	cluster.Wrap = append(slices.Clip(wraps), injector.Wrap)
	env := NewEnv(t, subject.Process(), cluster)
	var l life
	first, killed := env.process.log, injector.Killed()
	settle := func() {
		t.Helper()
		last := env.wait(or(s.Patience, time.Minute), killed, func() {
			killed = nil
			env.Restart(subject.Process(), wraps...)
		})
		if last.Err != nil {
			l.failures = append(l.failures, fmt.Sprintf("the last pass over %s failed: %v", last.Name, last.Err))
		}
		l.stages = append(l.stages, s.stageOf(env, subject))
	}
	obj, _ := s.Versions[0].DeepCopyObject().(client.Object)
	must(t, env.user.Create(t.Context(), obj))
	settle()
	for _, version := range s.Versions[1:] {
		must(t, env.update(version))
		settle()
	}
	must(t, env.user.Delete(t.Context(), obj))
	settle()
	if err := env.user.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err == nil {
		l.failures = append(l.failures, "the object is left after its deletion")
	}
	for _, w := range first.All() {
		if w.IsWrite() {
			l.writes = append(l.writes, strings.TrimSuffix(w.String(), fmt.Sprintf(" %d", w.Code)))
		}
	}
	l.killed = injector.last
	return l
}

func or(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// update brings the spec, labels and annotations of a version.
func (e *Env) update(version client.Object) error {
	id := e.id(version)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(id.kind)
	if err := e.user.Get(e.t.Context(), id.NamespacedName, live); err != nil {
		return err
	}
	next, err := unstructuredOf(version.DeepCopyObject(), id.kind)
	if err != nil {
		return err
	}
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	for k, v := range next.GetLabels() {
		labels = with(labels, k, v)
	}
	for k, v := range next.GetAnnotations() {
		annotations = with(annotations, k, v)
	}
	metadata, _ := live.Object["metadata"].(map[string]any)
	next.Object["metadata"] = metadata
	next.SetLabels(labels)
	next.SetAnnotations(annotations)
	return e.user.Update(e.t.Context(), next)
}

func with(m map[string]string, k, v string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[k] = v
	return m
}

// wait runs passes until none is due within patience, and returns the last one. It starts another process when this one
// was killed.
func (e *Env) wait(patience time.Duration, killed <-chan struct{}, restart func()) (last Result) {
	e.t.Helper()
	for range 1000 {
		e.process.view.settle()
		req, in, ok := e.process.queue.soonest()
		if !ok || in > patience {
			return last
		}
		<-time.After(in)
		last = e.pass(req)
		select {
		case <-killed:
			killed, last = nil, Result{} // its failure says nothing
			restart()
		default:
		}
	}
	e.t.Fatalf("looptest: after 1000 passes another one is due within %s", patience)
	return last
}

// stageOf returns what there is, without what differs in each run.
func (s Sweep) stageOf(e *Env, of Subject) map[string]string {
	stage := map[string]string{}
	for _, live := range e.server.all() {
		u := live.DeepCopy()
		for _, key := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			unstructured.RemoveNestedField(u.Object, "metadata", key)
		}
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", api.AnnotationExternal)
		if s.Ignore != nil {
			s.Ignore(u)
		}
		refs, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
		for _, item := range refs {
			if ref, is := item.(map[string]any); is {
				delete(ref, "uid")
			}
		}
		if refs != nil {
			_ = unstructured.SetNestedSlice(u.Object, refs, "metadata", "ownerReferences")
		}
		key := u.GetKind() + " " + client.ObjectKeyFromObject(u).String()
		strip(u.Object)
		text, err := json.Marshal(u.Object)
		must(e.t, err)
		stage[key] = string(text)
	}
	if of.External != nil {
		for name, content := range of.External() {
			stage["external "+name] = content
		}
	}
	return stage
}
