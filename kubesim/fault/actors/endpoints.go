package actors

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// EndpointSlices gives each Service with a selector one EndpointSlice, with the Pods that have an address. A Service without
// Pods, such as one for a Deployment, of which [Deployments] makes none, gets a slice without endpoints. Endpoints, which are
// deprecated, are not written.
func EndpointSlices() fault.Actor {
	return each("EndpointSlice controller", &corev1.ServiceList{}, func(ctx context.Context, c client.Client, s *corev1.Service) error {
		if s.DeletionTimestamp != nil || len(s.Spec.Selector) == 0 {
			return nil
		}
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
			return err
		}
		slice, err := sliceOf(ctx, c, s)
		if err != nil {
			return err
		}
		before := slice.DeepCopy()
		slice.Endpoints, slice.Ports = endpointsOf(s, pods.Items), portsOf(s, pods.Items)
		switch {
		case slice.UID == "":
			return c.Create(ctx, slice)
		case equality.Semantic.DeepEqual(before, slice):
			return nil
		}
		return c.Patch(ctx, slice, client.MergeFrom(before))
	})
}

// sliceOf is the EndpointSlice of a Service, or a new one.
func sliceOf(ctx context.Context, c client.Client, s *corev1.Service) (*discoveryv1.EndpointSlice, error) {
	mine := map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}
	all := &discoveryv1.EndpointSliceList{}
	if err := c.List(ctx, all, client.InNamespace(s.Namespace), client.MatchingLabels(mine)); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], s) {
			return &all.Items[i], nil
		}
	}
	mine = labels.Merge(s.Labels, mine)
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		mine[corev1.IsHeadlessService] = ""
	}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: s.Name + "-", Namespace: s.Namespace, Labels: mine,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, nil
}

// endpointsOf are the Pods behind a Service, by name.
func endpointsOf(s *corev1.Service, pods []corev1.Pod) []discoveryv1.Endpoint {
	all := []discoveryv1.Endpoint{}
	for i := range pods {
		p := &pods[i]
		if p.Status.PodIP == "" || isOver(p) {
			continue
		}
		serving, terminating := hasReady(p), p.DeletionTimestamp != nil
		e := discoveryv1.Endpoint{
			Addresses:  []string{p.Status.PodIP},
			Conditions: discoveryv1.EndpointConditions{Ready: new(s.Spec.PublishNotReadyAddresses || serving && !terminating), Serving: &serving, Terminating: &terminating},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
			NodeName:   new(p.Spec.NodeName),
		}
		if p.Spec.Hostname != "" && p.Spec.Subdomain == s.Name {
			e.Hostname = new(p.Spec.Hostname)
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b discoveryv1.Endpoint) int { return cmp.Compare(a.TargetRef.Name, b.TargetRef.Name) })
	return all
}

// portsOf are the ports of the Pods behind a Service. A port with a name that no container has is left out.
func portsOf(s *corev1.Service, pods []corev1.Pod) []discoveryv1.EndpointPort {
	all := []discoveryv1.EndpointPort{}
	for _, p := range s.Spec.Ports {
		if n := numberOfPort(p, pods); n > 0 {
			all = append(all, discoveryv1.EndpointPort{Name: new(p.Name), Port: &n, Protocol: new(cmp.Or(p.Protocol, corev1.ProtocolTCP)), AppProtocol: p.AppProtocol})
		}
	}
	return all
}

// numberOfPort is the number of a Service's port in its Pods, or 0 if there is none.
func numberOfPort(p corev1.ServicePort, pods []corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		return cmp.Or(p.TargetPort.IntVal, p.Port)
	}
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			for _, have := range c.Ports {
				if have.Name == p.TargetPort.StrVal {
					return have.ContainerPort
				}
			}
		}
	}
	return 0
}
