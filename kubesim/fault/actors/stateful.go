package actors

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// StatefulSets creates, adopts, replaces and deletes the Pods of StatefulSets, one at a time, and creates their claims.
// They become ready only if [Pods] acts, too, and [Claims] if they have claims. A claim that is missing while its Pod is pending
// is created again, and no Pod is created while a claim of it is being deleted. A Pod that has failed is replaced. There are
// no ControllerRevisions, and no claim is deleted.
func StatefulSets() fault.Actor {
	return each("StatefulSet controller", &appsv1.StatefulSetList{}, func(ctx context.Context, c client.Client, s *appsv1.StatefulSet) error {
		if s.DeletionTimestamp != nil {
			return nil
		}
		revision, err := revisionOf(s)
		if err != nil {
			return err
		}
		pods, err := podsOf(ctx, c, s)
		if err != nil {
			return err
		}
		if err := writeStatus(ctx, c, s, func(s *appsv1.StatefulSet) { s.Status = statusOf(s, pods, revision) }); err != nil {
			return err
		}
		return advance(ctx, c, s, pods, revision)
	})
}

// revisionOf names a StatefulSet's present template.
func revisionOf(s *appsv1.StatefulSet) (string, error) {
	text, err := json.Marshal(s.Spec.Template)
	if err != nil {
		return "", err
	}
	sum := fnv.New32a()
	_, _ = sum.Write(text) // never fails
	return fmt.Sprintf("%s-%x", s.Name, sum.Sum32()), nil
}

// podsOf lists the Pods that a StatefulSet controls, by name, after it has adopted those of its names that nobody controls:
// a StatefulSet may be deleted without its Pods, and created again.
func podsOf(ctx context.Context, c client.Client, s *appsv1.StatefulSet) (map[string]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		p := &list.Items[i]
		named := p.Name == s.Name+"-"+strconv.Itoa(ordinal(p.Name))
		if named && metav1.GetControllerOf(p) == nil && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
			before := p.DeepCopy()
			p.OwnerReferences = append(p.OwnerReferences, *metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("StatefulSet")))
			if err := c.Patch(ctx, p, client.MergeFrom(before)); err != nil {
				return nil, err
			}
		}
		if metav1.IsControlledBy(p, s) {
			pods[p.Name] = p
		}
	}
	return pods, nil
}

func statusOf(s *appsv1.StatefulSet, pods map[string]*corev1.Pod, revision string) appsv1.StatefulSetStatus {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: s.Generation, UpdateRevision: revision, CurrentRevision: s.Status.CurrentRevision,
		CollisionCount: new(int32(0)), Conditions: s.Status.Conditions,
	}
	for _, p := range pods {
		status.Replicas++
		if p.Labels[appsv1.ControllerRevisionHashLabelKey] == revision {
			status.UpdatedReplicas++
		}
		if isReady(p) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
	}
	if status.CurrentRevision == "" || status.UpdatedReplicas == numberOf(s.Spec.Replicas) && status.ReadyReplicas == status.UpdatedReplicas {
		status.CurrentRevision = revision
	}
	if status.CurrentRevision == revision {
		status.CurrentReplicas = status.UpdatedReplicas
	}
	return status
}

// isReady reports whether a Pod serves and is to stay.
func isReady(p *corev1.Pod) bool { return p.DeletionTimestamp == nil && hasReady(p) }

// hasReady reports whether a Pod's containers are ready, also while they end.
func hasReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// advance does the next thing that brings a StatefulSet's Pods closer to its spec.
func advance(ctx context.Context, c client.Client, s *appsv1.StatefulSet, pods map[string]*corev1.Pod, revision string) error {
	first := 0
	if s.Spec.Ordinals != nil {
		first = int(s.Spec.Ordinals.Start)
	}
	wanted := map[string]bool{}
	for i := range int(numberOf(s.Spec.Replicas)) {
		name := s.Name + "-" + strconv.Itoa(first+i)
		wanted[name] = true
		p := pods[name]
		if p == nil {
			return create(ctx, c, s, first+i, revision)
		}
		if isOver(p) && p.DeletionTimestamp == nil {
			return c.Delete(ctx, p, client.Preconditions{UID: &p.UID}) // another one takes its place
		}
		if p.Status.Phase == corev1.PodPending {
			if _, err := claim(ctx, c, s, name); err != nil {
				return err
			}
		}
		if !isReady(p) && s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
			return nil // the next ones wait for it
		}
	}
	return retire(ctx, c, s, pods, wanted, revision)
}

// retire deletes the next Pod that is not wanted, or is of an older template.
func retire(ctx context.Context, c client.Client, s *appsv1.StatefulSet, pods map[string]*corev1.Pod, wanted map[string]bool, revision string) error {
	names := make([]string, 0, len(pods))
	for name := range pods {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return ordinal(b) - ordinal(a) }) // the highest goes first
	for _, name := range names {
		p := pods[name]
		old := p.Labels[appsv1.ControllerRevisionHashLabelKey] != revision && s.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
		if p.DeletionTimestamp != nil {
			return nil
		}
		if !wanted[name] || old && ordinal(name) >= partition(s) {
			return c.Delete(ctx, p, client.Preconditions{UID: &p.UID})
		}
	}
	return nil
}

// ordinal is the number at the end of a Pod's name.
func ordinal(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '-' {
			n, _ := strconv.Atoi(name[i+1:]) // our own names end in numbers
			return n
		}
	}
	return 0
}

func partition(s *appsv1.StatefulSet) int {
	if r := s.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil {
		return int(*r.Partition)
	}
	return 0
}

// create creates a Pod of a StatefulSet, after its claims.
func create(ctx context.Context, c client.Client, s *appsv1.StatefulSet, n int, revision string) error {
	name := s.Name + "-" + strconv.Itoa(n)
	pod := &corev1.Pod{ObjectMeta: *s.Spec.Template.ObjectMeta.DeepCopy(), Spec: *s.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = name, s.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	pod.Spec.Hostname, pod.Spec.Subdomain = name, s.Spec.ServiceName
	if kept, err := claim(ctx, c, s, name); err != nil || !kept {
		return err
	}
	for i := range s.Spec.VolumeClaimTemplates {
		volume := s.Spec.VolumeClaimTemplates[i].Name
		// The claim takes the place of a volume of the template with its name.
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume + "-" + name},
		}})
	}
	err := c.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		return nil // it is another's, and has to go first
	}
	return err
}

// claim creates the claims of a Pod that are missing, and reports whether none of them is being deleted.
func claim(ctx context.Context, c client.Client, s *appsv1.StatefulSet, pod string) (kept bool, err error) {
	kept = true
	for i := range s.Spec.VolumeClaimTemplates {
		claim := s.Spec.VolumeClaimTemplates[i].DeepCopy()
		claim.Name, claim.Namespace, claim.Status = claim.Name+"-"+pod, s.Namespace, corev1.PersistentVolumeClaimStatus{}
		claim.Labels = labels.Merge(claim.Labels, s.Spec.Selector.MatchLabels) // as getPersistentVolumeClaims does in the real controller
		now := &corev1.PersistentVolumeClaim{}
		err := c.Get(ctx, client.ObjectKeyFromObject(claim), now)
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, claim)
		}
		if err != nil {
			return false, err
		}
		kept = kept && now.DeletionTimestamp == nil
	}
	return kept, nil
}
