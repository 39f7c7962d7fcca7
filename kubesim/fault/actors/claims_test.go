package actors_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// volume is a claim of one gibibyte.
func volume(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// mounting is a Pod that mounts a claim.
func mounting(name, claim string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template().Spec}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

// unscheduled reports whether a Pod waits, and says that it is because of a claim.
func unscheduled(why string) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending && len(p.Status.Conditions) == 1 &&
			p.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable && p.Status.Conditions[0].Message == why
	}
}

func runs(p *corev1.Pod) bool { return p.Spec.NodeName != "" && p.Status.Phase == corev1.PodRunning }

// TestPodsWaitForClaims proves that a Pod is scheduled when the claims that it names are there to stay, and not before.
func TestPodsWaitForClaims(t *testing.T) {
	claim, lost, p, late := volume("data"), volume("lost"), mounting("a", "data"), mounting("b", "lost")
	held := volume("held")
	held.Finalizers = []string{"example.com/backup"}
	after := mounting("c", "held")
	played(t,
		is(fault.Create(p), p, unscheduled(`persistentvolumeclaim "data" not found`)),
		is(fault.Create(claim), p, runs),
		fault.Create(lost),
		status(lost, `{"status":{"phase":"Lost"}}`),
		is(fault.Create(late), late, unscheduled(`persistentvolumeclaim "lost" is not bound`)),
		fault.Create(held),
		fault.Delete(held),
		is(fault.Create(after), after, unscheduled(`persistentvolumeclaim "held" is being deleted`)),
		fault.Merge(held, `{"metadata":{"finalizers":null}}`).As("backup").Gone(held),
		is(fault.Create(held), after, runs),
	)
}

// TestClaimsOfWaitingPods proves that a claim that is deleted before its Pod runs is made again, and no Pod
// is created for a claim that is being deleted.
func TestClaimsOfWaitingPods(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: meta(), Spec: appsv1.StatefulSetSpec{
		ServiceName: "db", Selector: selector(), Template: template(),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*volume("data")},
	}}
	s.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
	claim, pod := volume("data-db-0"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}}
	none := func(ctx context.Context, w *fault.World) error {
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "db-0"}, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("there is a Pod although its claim is being deleted: %w", err)
	}
	played(t,
		is(fault.Create(s), pod, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" }),
		is(fault.Delete(claim), claim, func(c *corev1.PersistentVolumeClaim) bool {
			return c.DeletionTimestamp == nil && c.Status.Phase == corev1.ClaimBound
		}),
		is(fault.Merge(pod, `{"spec":{"schedulingGates":null}}`), pod, runs),
		fault.Merge(claim, `{"metadata":{"finalizers":["kubernetes.io/pvc-protection","example.com/backup"]}}`).As("backup"),
		fault.Delete(claim),
		fault.Delete(pod).Expecting(none),
		is(fault.Merge(claim, `{"metadata":{"finalizers":null}}`).As("backup"), claim, func(c *corev1.PersistentVolumeClaim) bool { return c.DeletionTimestamp == nil }),
		is(fault.Merge(pod, `{"spec":{"schedulingGates":null}}`), pod, runs),
	)
}
