package actors_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
)

func meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: "db"} }

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}},
	}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
}

// played plays steps with all actors and an operator that does nothing.
func played(t *testing.T, steps ...fault.Step) {
	t.Helper()
	r := fault.Explore(t, fault.Scenario{
		Name: "actors", Actors: actors.All(), Steps: steps, Races: []fault.Step{},
		Operator: fault.Operator{SetUp: func(ctrl.Manager, *fault.Env) error { return nil }},
	})
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
}

// is expects something of an object.
func is[T client.Object](s fault.Step, obj T, ok func(T) bool) fault.Step {
	return s.Expecting(func(ctx context.Context, w *fault.World) error {
		now, _ := obj.DeepCopyObject().(T)
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: obj.GetName()}, now); err != nil {
			return err
		}
		if !ok(now) {
			return fmt.Errorf("%T %s is not as it should be: %+v", obj, obj.GetName(), now)
		}
		return nil
	})
}

// TestReady proves that whatever a scenario's operator may create becomes ready.
func TestReady(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: meta(), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector(), Template: template()}}
	ds := &appsv1.DaemonSet{ObjectMeta: meta(), Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template()}}
	pod := template()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	j := &batchv1.Job{ObjectMeta: meta(), Spec: batchv1.JobSpec{Template: pod}}
	held := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: batchv1.JobSpec{Template: pod, Suspend: new(true)}}
	svc := &corev1.Service{ObjectMeta: meta(), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
	played(t,
		is(fault.Create(d).Becomes(d, "Available"), d, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 3 }),
		is(fault.Merge(d, `{"spec":{"replicas":1}}`).Becomes(d, "Available"), d, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == 1 }),
		is(fault.Create(ds), ds, func(d *appsv1.DaemonSet) bool { return d.Status.NumberReady == d.Status.DesiredNumberScheduled }),
		fault.Create(j).Becomes(j, "Complete"),
		is(fault.Create(held), held, func(j *batchv1.Job) bool { return j.Status.StartTime == nil }),
		is(fault.Create(svc), svc, func(s *corev1.Service) bool { return len(s.Status.LoadBalancer.Ingress) == 1 }),
	)
}

// status is a step in which another controller writes a status.
func status(obj client.Object, patch string) fault.Step {
	return fault.Step{Name: "write the status of " + obj.GetName(), Do: func(ctx context.Context, w *fault.World) error {
		now, _ := obj.DeepCopyObject().(client.Object)
		now.SetNamespace("default")
		return w.Client.Status().Patch(ctx, now, client.RawPatch(types.MergePatchType, []byte(patch)))
	}}.As("somebody else")
}

// TestFinished proves that what is over stays as it is, and does not make an actor fail.
func TestFinished(t *testing.T) {
	pod := template()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	const why = `"reason":"BackoffLimitExceeded","lastTransitionTime":"2000-01-01T00:00:00Z"`
	job := func(name string, suspend bool) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: pod, Suspend: new(suspend)}}
	}
	failed, failing, others := job("failed", true), job("failing", true), job("others", false)
	others.Spec.ManagedBy = new("example.com/kueue")
	over := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "over"}, Spec: template().Spec}
	over.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
	lost := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: selector(), Template: template()}}
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "set-0"}}
	played(t,
		fault.Create(failed),
		status(failed, `{"status":{"startTime":"2000-01-01T00:00:00Z","conditions":[{"type":"FailureTarget","status":"True",`+why+`},{"type":"Failed","status":"True",`+why+`}]}}`),
		is(fault.Merge(failed, `{"spec":{"suspend":false}}`).Becomes(failed, "Failed"), failed, func(j *batchv1.Job) bool { return len(j.Status.Conditions) == 2 }),
		fault.Create(failing),
		status(failing, `{"status":{"startTime":"2000-01-01T00:00:00Z","conditions":[{"type":"FailureTarget","status":"True",`+why+`}]}}`),
		fault.Merge(failing, `{"spec":{"suspend":false}}`).Becomes(failing, "Failed"),
		is(fault.Create(others), others, func(j *batchv1.Job) bool { return j.Status.StartTime == nil }),
		fault.Create(over),
		status(over, `{"status":{"phase":"Failed"}}`),
		is(fault.Merge(over, `{"spec":{"schedulingGates":null}}`), over, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodFailed && p.Spec.NodeName == "" }),
		fault.Create(lost),
		is(status(lost, `{"status":{"phase":"Lost"}}`), lost, func(p *corev1.PersistentVolumeClaim) bool { return p.Status.Phase == corev1.ClaimLost }),
		is(fault.Create(set), first, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }),
		is(status(first, `{"status":{"phase":"Failed","conditions":[]}}`), first, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }),
	)
}

// TestFailingJob proves that an actor can let a Job fail, as the documentation of Jobs says.
func TestFailingJob(t *testing.T) {
	pod := template()
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "migrate"}, Spec: batchv1.JobSpec{Template: pod}}
	fails := fault.Actor{Name: "failing Pods", Act: func(ctx context.Context, w *fault.World) error {
		job := &batchv1.Job{}
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "migrate"}, job)
		if err != nil || job.Status.StartTime == nil || len(job.Status.Conditions) > 0 {
			return client.IgnoreNotFound(err)
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded}}
		return w.Client.Status().Update(ctx, job)
	}}
	r := fault.Explore(t, fault.Scenario{
		Name: "failing", Actors: append([]fault.Actor{fails}, actors.All()...), Steps: []fault.Step{fault.Create(j).Becomes(j, "Failed")},
		Operator: fault.Operator{SetUp: func(ctrl.Manager, *fault.Env) error { return nil }},
	})
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
}

// TestStatefulSets proves that Pods and claims follow the spec: they come in order, are replaced when the template
// changes, and those beyond the number of replicas go, each after its grace period.
func TestStatefulSets(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(2)), ServiceName: "db", Selector: selector(), Template: template(),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"tier": "gold"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-db-1"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1"}}
	up := func(n int32) func(*appsv1.StatefulSet) bool {
		return func(s *appsv1.StatefulSet) bool {
			return s.Status.ReadyReplicas == n && s.Status.UpdatedReplicas == n && s.Status.Replicas == n &&
				s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.ObservedGeneration == s.Generation
		}
	}
	played(t,
		is(is(fault.Create(s), s, up(2)), claim, func(p *corev1.PersistentVolumeClaim) bool {
			return p.Status.Phase == corev1.ClaimBound && maps.Equal(p.Labels, map[string]string{"tier": "gold", "app": "db"})
		}),
		is(fault.Merge(claim, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`).As("administrator"), claim, func(p *corev1.PersistentVolumeClaim) bool {
			return p.Status.Capacity.Storage().String() == "2Gi"
		}),
		is(is(fault.Merge(s, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i:2"}]}}}}`), s, up(2)), pod, func(p *corev1.Pod) bool {
			return p.Spec.Containers[0].Image == "i:2" && p.Status.Phase == corev1.PodRunning
		}),
		is(fault.Merge(s, `{"spec":{"replicas":1}}`), s, up(1)).Gone(pod),
		fault.Delete(s).Gone(s).Expecting(func(ctx context.Context, w *fault.World) error {
			err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db-0"}, &corev1.Pod{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("the Pod outlives its StatefulSet: %w", err)
		}),
	)
}

// TestPatientPods proves that a Pod with a grace period of a week is gone after 30 seconds: its containers end on SIGTERM.
func TestPatientPods(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: meta(), Spec: template().Spec}
	p.Spec.TerminationGracePeriodSeconds = new(int64(7 * 24 * 60 * 60))
	played(t, fault.Create(p).Becomes(p, "Ready"), fault.Delete(p), fault.Wait(time.Minute).Gone(p))
}

// TestEndpointSlices proves that a Service has the Pods behind it in its EndpointSlice: with their ports, not ready while they
// end, and without those that are gone.
func TestEndpointSlices(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: selector().MatchLabels}, Spec: template().Spec}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "sql", ContainerPort: 5432}}
		return p
	}
	svc := &corev1.Service{ObjectMeta: meta(), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: selector().MatchLabels,
		Ports: []corev1.ServicePort{{Name: "sql", Port: 80, TargetPort: intstr.FromString("sql")}, {Name: "other", Port: 81, TargetPort: intstr.FromString("no-container")}},
	}}
	b := pod("b")
	b.Spec.TerminationGracePeriodSeconds = new(int64(30))
	has := func(s fault.Step, want string) fault.Step {
		return s.Expecting(func(ctx context.Context, w *fault.World) error {
			all := &discoveryv1.EndpointSliceList{}
			if err := w.Client.List(ctx, all, client.InNamespace("default")); err != nil {
				return err
			}
			var got []string
			for _, slice := range all.Items {
				for _, p := range slice.Ports {
					got = append(got, fmt.Sprint(*p.Name, ":", *p.Port))
				}
				for _, e := range slice.Endpoints {
					got = append(got, fmt.Sprint(e.TargetRef.Name, " ", *e.Conditions.Ready))
				}
			}
			if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	var terminating atomic.Value // how the endpoint of b looks while it ends
	watch := fault.Actor{Name: "reader", Act: func(ctx context.Context, w *fault.World) error {
		all := &discoveryv1.EndpointSliceList{}
		err := w.Client.List(ctx, all, client.InNamespace("default"))
		for _, slice := range all.Items {
			for _, e := range slice.Endpoints {
				if *e.Conditions.Terminating {
					terminating.Store(fmt.Sprint(e.TargetRef.Name, " ready ", *e.Conditions.Ready, " serving ", *e.Conditions.Serving))
				}
			}
		}
		return err
	}}
	r := fault.Explore(t, fault.Scenario{
		Name: "endpoints", Actors: append(actors.All(), watch), Races: []fault.Step{},
		Operator: fault.Operator{SetUp: func(ctrl.Manager, *fault.Env) error { return nil }},
		Steps: []fault.Step{
			has(fault.Create(svc), ""),
			has(fault.Create(pod("a")), "sql:5432, a true"),
			has(fault.Create(b), "sql:5432, a true, b true"),
			has(fault.Delete(b).Gone(b), "sql:5432, a true"),
			has(fault.Delete(svc), ""),
		},
	})
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
	if got, want := terminating.Load(), any("b ready false serving true"); got != want {
		t.Errorf("while b ended, its endpoint was %q, want %q", got, want)
	}
}

// TestAdoption proves that Pods which outlive their StatefulSet belong to one that is created under its name later: operators
// that grow volumes do that.
func TestAdoption(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: selector(), Template: template()}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-other", Labels: selector().MatchLabels}, Spec: template().Spec}
	var uids [2]types.UID
	note := func(step fault.Step, n int) fault.Step {
		return step.Expecting(func(ctx context.Context, w *fault.World) error {
			var p corev1.Pod
			if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db-0"}, &p); err != nil {
				return err
			}
			uids[n] = p.UID
			var owner appsv1.StatefulSet
			if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db"}, &owner); err == nil && !metav1.IsControlledBy(&p, &owner) {
				return fmt.Errorf("the Pod's owners are %v", p.OwnerReferences)
			}
			return nil
		})
	}
	played(t,
		note(fault.Create(s), 0),
		fault.Create(other),
		note(fault.Step{Name: "delete db, but not its Pod", Do: func(ctx context.Context, w *fault.World) error {
			of := s.DeepCopy()
			of.Namespace = "default"
			return w.Client.Delete(ctx, of, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		}}, 1),
		is(note(fault.Create(s).Named("create db again"), 1), s, func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 1 && s.Status.Replicas == 1 }),
	)
	if uids[0] != uids[1] {
		t.Errorf("the Pod was replaced: %s became %s", uids[0], uids[1])
	}
}

// TestClaimsVolume proves that a claim takes the place of a volume of the template that has its name.
func TestClaimsVolume(t *testing.T) {
	pods := template()
	pods.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "tmp"}}
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{
		ServiceName: "db", Selector: selector(), Template: pods,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}}
	played(t, is(fault.Create(s), pod, func(p *corev1.Pod) bool {
		claims := map[string]int{}
		for _, v := range p.Spec.Volumes {
			claims[v.Name]++
			if (v.Name == "data") != (v.PersistentVolumeClaim != nil) {
				return false
			}
		}
		return claims["data"] == 1 && claims["tmp"] == 1
	}))
}

// TestTermination proves that a Pod has a time with a deletionTimestamp, as has an owner that waits for it: bugs in
// that time need it.
func TestTermination(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: selector(), Template: template()}}
	var owner, pod bool
	looks := fault.Actor{Name: "observer", Act: func(ctx context.Context, w *fault.World) error {
		var owners appsv1.StatefulSetList
		var pods corev1.PodList
		if err := errors.Join(w.Client.List(ctx, &owners), w.Client.List(ctx, &pods)); err != nil {
			return err
		}
		for i := range owners.Items {
			owner = owner || owners.Items[i].DeletionTimestamp != nil
		}
		for i := range pods.Items {
			pod = pod || pods.Items[i].DeletionTimestamp != nil
		}
		return nil
	}}
	fault.Explore(t, fault.Scenario{
		Name: "termination", Actors: append(actors.All(), looks), Races: []fault.Step{},
		Operator: fault.Operator{SetUp: func(ctrl.Manager, *fault.Env) error { return nil }},
		Steps: []fault.Step{
			fault.Create(s),
			{Name: "delete db", Do: func(ctx context.Context, w *fault.World) error {
				of := s.DeepCopy()
				of.Namespace = "default"
				return w.Client.Delete(ctx, of, client.PropagationPolicy(metav1.DeletePropagationForeground))
			}},
			fault.Wait(0).Gone(s),
		},
	})
	if !owner || !pod {
		t.Errorf("a time with a deletionTimestamp: owner %t, Pod %t; want both", owner, pod)
	}
}

// TestOrderOfEndpoints proves that the EndpointSlice of a Service is up to date when the status of its StatefulSet is: an
// operator that watches only the latter would find an older slice, and never look again.
func TestOrderOfEndpoints(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), ServiceName: "db", Selector: selector(), Template: template()}}
	svc := &corev1.Service{ObjectMeta: meta(), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: selector().MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}}}
	var late atomic.Value
	looks := fault.Actor{Name: "observer", Act: func(ctx context.Context, w *fault.World) error {
		var sets appsv1.StatefulSetList
		var all discoveryv1.EndpointSliceList
		err := errors.Join(w.Client.List(ctx, &sets), w.Client.List(ctx, &all))
		ready := 0
		for _, slice := range all.Items {
			ready += len(slice.Endpoints)
		}
		for i := range sets.Items {
			if n := int(sets.Items[i].Status.ReadyReplicas); n > ready {
				late.Store(fmt.Sprintf("%d Pods are ready, %d have an endpoint", n, ready))
			}
		}
		return err
	}}
	r := fault.Explore(t, fault.Scenario{
		Name: "order", Actors: append([]fault.Actor{looks}, actors.All()...), Races: []fault.Step{},
		Operator: fault.Operator{SetUp: func(ctrl.Manager, *fault.Env) error { return nil }},
		Steps:    []fault.Step{fault.Create(svc), is(fault.Create(s), s, func(s *appsv1.StatefulSet) bool { return s.Status.ReadyReplicas == 2 })},
	})
	for _, f := range r.Findings {
		t.Error(f.Text)
	}
	if got := late.Load(); got != nil {
		t.Error(got)
	}
}
