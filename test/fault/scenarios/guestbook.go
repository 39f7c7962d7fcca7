package scenarios

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/guestbook/api/v1"
	"github.com/trimtab-dev/trimtab/test/fault/scenarios/internal/guestbook"
)

// guestbooks is the name of the operator of Guestbooks.
const guestbooks = "guestbooks.trimtab.dev"

// Guestbook returns the scenario of the guestbook sample, whose CRDs are in a folder. The steps play the
// controller of Deployments.
func Guestbook(crds fs.FS) []fault.Scenario {
	b := &v1.Guestbook{ObjectMeta: named("book", nil), Spec: v1.GuestbookSpec{Welcome: "hello"}}
	const database, page = "deployment book-redis", "deployment book"
	rest := []string{"configmap book", "service book", "service book-redis"}
	first := slices.Sorted(slices.Values(append([]string{database + " 1"}, rest...)))
	all := slices.Sorted(slices.Values(append([]string{database + " 1", page + " 2"}, rest...)))
	larger := slices.Sorted(slices.Values(append([]string{database + " 1", page + " 3"}, rest...)))
	steps := []fault.Step{
		fault.Create(b).Expecting(consistsOf(first...)),
		fault.Step{Name: "the Pods of the database start", Do: startPods("book-redis")}.Expecting(consistsOf(all...)),
		fault.Step{Name: "the Pods of the page start", Do: startPods("book")}.Becomes(b, api.ConditionReady),
		fault.Merge(b, `{"spec":{"pages":3,"welcome":"again"}}`).Expecting(consistsOf(larger...)),
		fault.Step{Name: "one more Pod starts", Do: startPods("book")}.Becomes(b, api.ConditionReady),
		{Name: "somebody scales the page", Do: scalePage, Expect: consistsOf(larger...)},
		fault.Step{Name: "the Pods are as before", Do: startPods("book")}.Becomes(b, api.ConditionReady),
		fault.Step{Name: "somebody deletes the Service", Do: deleteService}.Becomes(b, api.ConditionReady).Expecting(consistsOf(larger...)),
		fault.Delete(b).Gone(b).Expecting(consistsOf()),
	}
	return []fault.Scenario{{
		Name: "guestbook", Operator: componentProcess(guestbookOperator(crds), "get configmaps", "get deployments.apps", "list deployments.apps", "list horizontalpodautoscalers.autoscaling",
			"list services", "update configmaps", "update deployments.apps", "update services"),
		Steps: steps, Foreign: sometimes(),
	}}
}

// guestbookOperator is the sample's, which has time: the steps decide when Pods start.
func guestbookOperator(crds fs.FS) func(*fault.Env) operator.Options {
	return func(env *fault.Env) operator.Options {
		render := func(ctx context.Context, r component.RenderRequest[*v1.Guestbook]) (component.Set, error) {
			env.Author("Render")
			return guestbook.Render(ctx, r)
		}
		return operator.Options{
			Name: "guestbook", AddToScheme: v1.AddToScheme, CRDs: crds,
			Controllers: func() ([]operator.Controller, error) {
				return []operator.Controller{component.New(component.RenderFunc[*v1.Guestbook](render), component.Options[*v1.Guestbook]{
					Name: guestbooks, Timeout: 24 * time.Hour, Kinds: []schema.GroupVersionKind{
						appsv1.SchemeGroupVersion.WithKind("Deployment"),
						corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
					},
				})}, nil
			},
		}
	}
}

// consistsOf expects objects of the operator, Deployments with their replicas, and no others.
func consistsOf(want ...string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var got []string
		ours := client.HasLabels{guestbooks + "/owner-id"}
		var deployments appsv1.DeploymentList
		if err := w.Client.List(ctx, &deployments, ours); err != nil {
			return err
		}
		for _, d := range deployments.Items {
			got = append(got, fmt.Sprintf("deployment %s %d", d.Name, *d.Spec.Replicas))
		}
		for _, kind := range []string{"Service", "ConfigMap"} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
			if err := w.Client.List(ctx, list, ours); err != nil {
				return err
			}
			for _, o := range list.Items {
				got = append(got, strings.ToLower(kind)+" "+o.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("there are %s, want %s", strings.Join(got, ", "), strings.Join(want, ", "))
		}
		return nil
	}
}

// startPods does what the controller of Deployments does when all Pods of one are available.
func startPods(name string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		d := &appsv1.Deployment{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, d); err != nil {
			return err
		}
		n, at := *d.Spec.Replicas, metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable", LastTransitionTime: at, LastUpdateTime: at},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastTransitionTime: at, LastUpdateTime: at},
			},
		}
		return w.Client.Status().Update(ctx, d)
	}
}

func scalePage(ctx context.Context, w *fault.World) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "book"}}
	return w.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":7}}`)))
}

func deleteService(ctx context.Context, w *fault.World) error {
	return w.Client.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "book"}})
}
