package actors

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// node is where all Pods run.
const node = "node"

// Pods is scheduler and kubelet of one node: Pods are bound, run and become ready. A Pod that is deleted is removed
// after its grace period, or after 30 seconds if that is longer. Containers never end by themselves, and a Pod whose phase is
// Succeeded or Failed stays so.
//
// A Pod is bound when all PersistentVolumeClaims that its volumes name exist, are bound, and are not being deleted. Until then
// its condition PodScheduled is False, with a message that names the claim. [Claims] binds them; without it, a step or another actor has to.
func Pods() fault.Actor {
	return each("kubelet", &corev1.PodList{}, func(ctx context.Context, c client.Client, p *corev1.Pod) error {
		switch {
		case p.DeletionTimestamp != nil:
			if time.Now().Before(endOf(p)) {
				return nil
			}
			return c.Delete(ctx, p, client.GracePeriodSeconds(0), client.Preconditions{UID: &p.UID})
		case isOver(p), p.Spec.NodeName == "" && len(p.Spec.SchedulingGates) > 0, isReady(p):
			return nil
		case p.Spec.NodeName == "":
			switch why, err := lacking(ctx, c, p); {
			case err != nil:
				return err
			case why != "":
				return writeStatus(ctx, c, p, func(p *corev1.Pod) { wait(p, why) })
			}
			return c.SubResource("binding").Create(ctx, p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
		}
		return writeStatus(ctx, c, p, run)
	})
}

// lacking says which claim a Pod has to wait for, and why; nothing if it may be bound. The claim of an ephemeral volume comes
// with the Pod.
func lacking(ctx context.Context, c client.Client, p *corev1.Pod) (why string, err error) {
	for i := range p.Spec.Volumes {
		from := p.Spec.Volumes[i].PersistentVolumeClaim
		if from == nil {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: from.ClaimName}, claim)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("persistentvolumeclaim %q not found", from.ClaimName), nil
		case err != nil:
			return "", err
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", from.ClaimName), nil
		case claim.Status.Phase != corev1.ClaimBound:
			return fmt.Sprintf("persistentvolumeclaim %q is not bound", from.ClaimName), nil
		}
	}
	return "", nil
}

// wait says of a Pod that it cannot be scheduled.
func wait(p *corev1.Pod, why string) {
	is := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why, LastTransitionTime: metav1.Now(),
	}
	at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == is.Type })
	if at < 0 {
		p.Status.Conditions = append(p.Status.Conditions, is)
		return
	}
	if p.Status.Conditions[at].Status == is.Status {
		is.LastTransitionTime = p.Status.Conditions[at].LastTransitionTime
	}
	p.Status.Conditions[at] = is
}

// isOver reports whether all containers of a Pod have ended for good.
func isOver(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// termination is how long containers take to end at most, even if they may take longer.
const termination = 30 * time.Second

// endOf is when the containers of a Pod that is being deleted have ended.
func endOf(p *corev1.Pod) time.Time {
	end := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		if longer := time.Duration(*grace)*time.Second - termination; longer > 0 {
			end = end.Add(-longer)
		}
	}
	return end
}

// run is a Pod whose containers run and are ready.
func run(p *corev1.Pod) {
	now := metav1.Now()
	s := &p.Status
	s.Phase, s.StartTime, s.PodIP, s.HostIP = corev1.PodRunning, &now, addressOf(p), "10.0.0.1"
	s.PodIPs, s.HostIPs = []corev1.PodIP{{IP: s.PodIP}}, []corev1.HostIP{{IP: s.HostIP}}
	s.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	s.ContainerStatuses = nil
	for _, c := range p.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
}

// addressOf is an address that an object always gets.
func addressOf(obj client.Object) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(obj.GetNamespace() + "/" + obj.GetName())) // never fails
	n := sum.Sum32()
	return fmt.Sprintf("10.%d.%d.%d", 1+n>>16&0x7f, n>>8&0xff, 1+n&0x7f)
}

// Claims binds PersistentVolumeClaims and gives them the capacity that they request, also when the request grows.
// There are no PersistentVolumes. A claim whose phase is Lost stays so.
func Claims() fault.Actor {
	return each("volume binder", &corev1.PersistentVolumeClaimList{}, func(ctx context.Context, c client.Client, p *corev1.PersistentVolumeClaim) error {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.ClaimLost {
			return nil
		}
		if p.Spec.VolumeName == "" {
			before := p.DeepCopy()
			p.Spec.VolumeName = "pv-" + p.Namespace + "-" + p.Name
			return c.Patch(ctx, p, client.MergeFrom(before))
		}
		return writeStatus(ctx, c, p, func(p *corev1.PersistentVolumeClaim) {
			p.Status.Phase, p.Status.AccessModes, p.Status.Capacity = corev1.ClaimBound, p.Spec.AccessModes, p.Spec.Resources.Requests
		})
	})
}

// LoadBalancers gives Services of type LoadBalancer an address.
func LoadBalancers() fault.Actor {
	return each("load balancer", &corev1.ServiceList{}, func(ctx context.Context, c client.Client, s *corev1.Service) error {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.DeletionTimestamp != nil || len(s.Status.LoadBalancer.Ingress) > 0 {
			return nil
		}
		return writeStatus(ctx, c, s, func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addressOf(s), IPMode: new(corev1.LoadBalancerIPModeVIP)}}
		})
	})
}

// Certificates issues the certificates of cert-manager, if its CustomResourceDefinitions are installed: each gets a
// Secret with the keys of a real one, and becomes ready. What the Secret contains is no certificate.
func Certificates() fault.Actor {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"})
	return each("cert-manager", list, func(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
		name, _, _ := unstructured.NestedString(u.Object, "spec", "secretName")
		if u.GetDeletionTimestamp() != nil || name == "" {
			return nil
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: u.GetNamespace(), Annotations: map[string]string{"cert-manager.io/certificate-name": u.GetName()}},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{"tls.crt": []byte("certificate of " + u.GetName()), "tls.key": []byte("key of " + u.GetName()), "ca.crt": []byte("authority")},
		}
		if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if _, issued, _ := unstructured.NestedInt64(u.Object, "status", "revision"); issued {
			return nil
		}
		return writeStatus(ctx, c, u, func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"revision": int64(1), "conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date and has not expired",
				"observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}}}
		})
	})
}
