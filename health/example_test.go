package health_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/health"
)

// A Deployment has no condition Ready, so kstatus decides.
func ExampleLacking() {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
	d.Spec.Replicas = new(int32(1))
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	fmt.Printf("%s %s\n", d.Name, health.Lacking(d, kind))

	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True"}},
	}
	fmt.Printf("%q\n", health.Lacking(d, kind))
	// Output:
	// web is not ready
	// ""
}
