// Command guestbook is an operator of components: each Guestbook object stands for a web page, the
// database behind it, and what connects the two.
package main

import (
	"context"
	"embed"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/guestbook/api/v1"
)

// region: operator
// region: render

// render returns the dependents of a Guestbook: the page comes after the database.
func render(_ context.Context, r component.RenderRequest[*v1.Guestbook]) (component.Set, error) {
	var s component.Set
	database := s.Add(deployment(r.Name+"-redis", "redis:8", 6379, 1))
	s.Add(service(r.Name+"-redis", 6379))
	texts := s.Add(&corev1.ConfigMap{ObjectMeta: named(r.Name), Data: map[string]string{"welcome": r.Component.Spec.Welcome}})
	s.Add(deployment(r.Name, "guestbook:5", 80, r.Component.Spec.Pages)).After(database, texts)
	s.Add(service(r.Name, 80))
	return s, nil
}

// endregion: render

func deployment(name, image string, port, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: metav1.SetAsLabelSelector(named(name).Labels),
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: named(name).Labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: image, Ports: []corev1.ContainerPort{{ContainerPort: port}}}},
		}},
	}}
}

func service(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{
		Selector: named(name).Labels, Ports: []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(port)}},
	}}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}
}

//go:embed crds
var crds embed.FS

func main() {
	kinds := []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	}
	options := component.Options[*v1.Guestbook]{Name: "guestbooks.trimtab.dev", Kinds: kinds}
	operator.Main(operator.Options{
		Name: "guestbook", AddToScheme: v1.AddToScheme, CRDs: crds,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{component.New(component.RenderFunc[*v1.Guestbook](render), options)}, nil
		},
	})
}

// endregion: operator
