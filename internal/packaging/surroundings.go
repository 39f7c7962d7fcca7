package packaging

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// surroundings returns what goes with a Deployment in each way of installing it, and needs no other software.
func (m Model) surroundings(o Objects) []client.Object {
	out := []client.Object{m.disruption(o), m.network(o)}
	if s := m.metricsService(o); s != nil {
		out = append(out, s)
	}
	return out
}

func (m Model) meta(o Objects, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Installation + suffix, Namespace: o.Deployment.Namespace, Labels: o.Deployment.Labels}
}

// disruption has one replica evicted after the other. One of one may be evicted: it starts elsewhere, and loses nothing.
func (m Model) disruption(o Objects) client.Object {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: m.meta(o, ""),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: o.Deployment.Spec.Selector,
		},
	}
}

// network lets others reach the ports that the operator declares, and nothing else of it. What it reaches itself is not
// limited: that depends on the API it is for.
func (m Model) network(o Objects) client.Object {
	policy := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: m.meta(o, ""),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *o.Deployment.Spec.Selector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
	var ports []networkingv1.NetworkPolicyPort
	for _, p := range o.Deployment.Spec.Template.Spec.Containers[0].Ports {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromString(p.Name))})
	}
	if len(ports) > 0 { // a rule without ports would allow all
		policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{Ports: ports}}
	}
	return policy
}

// metricsPort is the name of the port, in the container and in the Service.
const metricsPort = "metrics"

// metricsService returns the Service that a ServiceMonitor needs, or nil if the operator serves no metrics.
func (m Model) metricsService(o Objects) client.Object {
	for _, p := range o.Deployment.Spec.Template.Spec.Containers[0].Ports {
		if p.Name == metricsPort {
			return &corev1.Service{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
				ObjectMeta: m.meta(o, "-metrics"),
				Spec: corev1.ServiceSpec{
					Selector: o.Deployment.Spec.Selector.MatchLabels,
					Ports:    []corev1.ServicePort{{Name: metricsPort, Port: p.ContainerPort, TargetPort: intstr.FromString(metricsPort)}},
				},
			}
		}
	}
	return nil
}

// monitor returns what has the Prometheus Operator read the metrics.
func (m Model) monitor(o Objects) client.Object {
	labels := map[string]any{}
	for k, v := range o.Deployment.Labels {
		labels[k] = v
	}
	return m.prometheus(o, "ServiceMonitor", map[string]any{
		"selector":  map[string]any{"matchLabels": labels},
		"endpoints": []any{map[string]any{"port": metricsPort}},
	})
}

// prometheus returns an object of the Prometheus Operator.
func (m Model) prometheus(o Objects, kind string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion("monitoring.coreos.com/v1")
	u.SetKind(kind)
	u.SetName(m.Installation)
	u.SetNamespace(o.Deployment.Namespace)
	u.SetLabels(o.Deployment.Labels)
	return u
}

// dashboard returns the ConfigMap from which Grafana's sidecar takes the dashboard.
func (m Model) dashboard(o Objects) client.Object {
	meta := m.meta(o, "-dashboard")
	meta.Labels = map[string]string{"grafana_dashboard": "1"}
	maps.Copy(meta.Labels, o.Deployment.Labels)
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta,
		Data: map[string]string{m.Installation + ".json": string(m.Dashboard)},
	}
}
