package devcluster

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Simulated addresses are in 198.18.0.0/15, which RFC 2544 reserves for
// benchmarks: a client that tries to use one reaches nobody.
const (
	ingressController = "trimtab.dev/simulated"
	ingressAddress    = "198.19.0.1"
)

// loadBalancers publishes an address for each Service of type LoadBalancer that
// names no loadBalancerClass and has no address yet.
func (s *simulation) loadBalancers(context.Context) (func(context.Context), error) {
	services := s.informers.Core().V1().Services()
	f, err := follow(services.Informer(), func(ctx context.Context, name cache.ObjectName) error {
		service, err := services.Lister().Services(name.Namespace).Get(name.Name)
		if err != nil {
			return err
		}
		status, changed := balanced(service)
		if !changed {
			return nil
		}
		service = service.DeepCopy()
		service.Status.LoadBalancer = status
		_, err = s.clients.CoreV1().Services(name.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return f.run, nil
}

// balanced returns the status of a Service's load balancer, and whether it
// differs. When the type of a Service changes, the API server removes the
// status.
func balanced(s *corev1.Service) (corev1.LoadBalancerStatus, bool) {
	now := s.Status.LoadBalancer
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer || s.Spec.LoadBalancerClass != nil || len(now.Ingress) > 0 {
		return now, false
	}
	address, ok := balancerAddress(s)
	if !ok {
		return now, false
	}
	return corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{
		IP: address, IPMode: new(corev1.LoadBalancerIPModeVIP),
	}}}, true
}

// balancerAddress is the address that the Service asks for, or its cluster IP
// 10.96.x.y moved to 198.18.x.y. So no two Services have the same address, and
// each keeps its own without a record of who has which.
func balancerAddress(s *corev1.Service) (string, bool) {
	if wanted := s.Spec.LoadBalancerIP; wanted != "" {
		_, err := netip.ParseAddr(wanted)
		return wanted, err == nil
	}
	ip, err := netip.ParseAddr(s.Spec.ClusterIP)
	if err != nil || !ip.Is4() {
		return "", false
	}
	b := ip.As4()
	return netip.AddrFrom4([4]byte{198, 18, b[2], b[3]}).String(), true
}

// ingresses publishes one address for all Ingresses whose class is served by the
// simulated controller, as a controller with one load balancer does.
func (s *simulation) ingresses(context.Context) (func(context.Context), error) {
	ingresses := s.informers.Networking().V1().Ingresses()
	classes := s.informers.Networking().V1().IngressClasses()
	served := func(i *networkingv1.Ingress) (bool, error) {
		if i.Spec.IngressClassName == nil {
			return false, nil
		}
		class, err := classes.Lister().Get(*i.Spec.IngressClassName)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && class.Spec.Controller == ingressController, err
	}
	f, err := follow(ingresses.Informer(), func(ctx context.Context, name cache.ObjectName) error {
		ingress, err := ingresses.Lister().Ingresses(name.Namespace).Get(name.Name)
		if err != nil {
			return err
		}
		ours, err := served(ingress)
		if err != nil {
			return err
		}
		status := published(ingress.Status.LoadBalancer, ours)
		if equality.Semantic.DeepEqual(status, ingress.Status.LoadBalancer) {
			return nil
		}
		ingress = ingress.DeepCopy()
		ingress.Status.LoadBalancer = status
		_, err = s.clients.NetworkingV1().Ingresses(name.Namespace).UpdateStatus(ctx, ingress, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	// An Ingress may exist before its class.
	_, err = classes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			for _, i := range ingresses.Informer().GetStore().List() {
				f.enqueue(i)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return f.run, nil
}

// published returns the status of an Ingress's load balancer: with the simulated
// address if the class is ours, and otherwise without it.
func published(now networkingv1.IngressLoadBalancerStatus, ours bool) networkingv1.IngressLoadBalancerStatus {
	simulated := networkingv1.IngressLoadBalancerIngress{IP: ingressAddress}
	if ours {
		return networkingv1.IngressLoadBalancerStatus{Ingress: []networkingv1.IngressLoadBalancerIngress{simulated}}
	}
	return networkingv1.IngressLoadBalancerStatus{Ingress: slices.DeleteFunc(slices.Clone(now.Ingress),
		func(i networkingv1.IngressLoadBalancerIngress) bool { return i.IP == ingressAddress })}
}
