package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trimtab-dev/trimtab/samples/webpage/api/v1"
)

// The children of a WebPage have its name, which each function leaves out.

func labels(p *v1.WebPage) map[string]string { return map[string]string{"app": p.Name} }

func configMap(p *v1.WebPage) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: map[string]string{"index.html": p.Spec.HTML}}
}

func deployment(p *v1.WebPage) *appsv1.Deployment {
	html := corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: p.Name}}
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)), Selector: metav1.SetAsLabelSelector(labels(p)),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(p)}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "nginx", Image: "nginx:1.29", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				VolumeMounts: []corev1.VolumeMount{{Name: "html", MountPath: "/usr/share/nginx/html"}},
			}},
			Volumes: []corev1.Volume{{Name: "html", VolumeSource: corev1.VolumeSource{ConfigMap: &html}}},
		}},
	}}
}

func service(p *v1.WebPage) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{Selector: labels(p), Ports: []corev1.ServicePort{{Port: 80}}}}
}

func ingress(p *v1.WebPage) *networkingv1.Ingress {
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: p.Name, Port: networkingv1.ServiceBackendPort{Number: 80}}}
	return &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
		IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
			Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: backend,
		}}}},
	}}}}
}
