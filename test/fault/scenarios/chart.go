package scenarios

import (
	"context"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/component/componenttest"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/kubesim/fault/actors"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/chart/api/v1"
)

// Chart returns the scenario of the sample with a chart, in whose folder sample is: definitions, a webhook with a
// certificate, roles, a sub-chart, and hook Jobs. Actors play the controllers of workloads.
func Chart(sample fs.FS) ([]fault.Scenario, error) {
	chart, err := helm.NewGenerator(sample, "chart", helm.Options{})
	if err != nil {
		return nil, err
	}
	crds, err := fs.Sub(sample, "crds")
	if err != nil {
		return nil, err
	}
	desk := &v1.Helpdesk{ObjectMeta: named("desk", nil), Spec: v1.HelpdeskSpec{Replicas: 2, Greeting: "hello"}}
	steps := []fault.Step{
		fault.Create(desk).Becomes(desk, api.ConditionReady),
		fault.Merge(desk, `{"spec":{"greeting":"again","cache":{"enabled":true}}}`).Becomes(desk, api.ConditionReady),
		fault.Step{Name: "somebody edits the settings", Do: editSettings}.Becomes(desk, api.ConditionReady),
		fault.Delete(desk).Gone(desk),
	}
	unused := []string{
		"get jobs.batch", "get services", "list apiservices.apiregistration.k8s.io", "list clusterrolebindings.rbac.authorization.k8s.io",
		"list customresourcedefinitions.apiextensions.k8s.io", "list deployments.apps", "list horizontalpodautoscalers.autoscaling", "list jobs.batch",
		"list secrets", "list serviceaccounts", "list services", "list statefulsets.apps", "update clusterrolebindings.rbac.authorization.k8s.io",
		"update clusterroles.rbac.authorization.k8s.io", "update configmaps", "update customresourcedefinitions.apiextensions.k8s.io",
		"update deployments.apps", "update jobs.batch", "update poddisruptionbudgets.policy", "update secrets", "update serviceaccounts",
		"update services", "update statefulsets.apps", "update validatingwebhookconfigurations.admissionregistration.k8s.io",
		"watch apiservices.apiregistration.k8s.io", "watch horizontalpodautoscalers.autoscaling", "watch tickets.helpdesk.example.org",
	}
	return []fault.Scenario{{
		Name: "chart", Operator: componentProcess(chartOperator(chart, crds), unused...), Steps: steps, Actors: actors.All(), Foreign: sometimes(),
		// Not the change before the first installation is ready: hooks of upgrades do not run then, as they do at rest.
		Races: []fault.Step{fault.Delete(desk)},
	}}, nil
}

// chartOperator is the sample's, which has time.
func chartOperator(chart *helm.Generator, crds fs.FS) func(*fault.Env) operator.Options {
	return func(env *fault.Env) operator.Options {
		renderer := componenttest.Fixed(helm.NewRenderer(chart, func(h *v1.Helpdesk) (map[string]any, error) {
			env.Author("Render")
			return runtime.DefaultUnstructuredConverter.ToUnstructured(&h.Spec)
		}))
		return operator.Options{
			Name: "chart", AddToScheme: v1.AddToScheme, CRDs: crds,
			Controllers: func() ([]operator.Controller, error) {
				kinds, err := chart.Kinds(map[string]any{"cache": map[string]any{"enabled": true}})
				if err != nil {
					return nil, err
				}
				options := component.Options[*v1.Helpdesk]{Name: "helpdesks.trimtab.dev", HandoverGrace: -1, Timeout: 24 * time.Hour, Kinds: kinds}
				options.Loop.Needs = []loop.Need{{
					GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Verbs: []string{"escalate", "bind"}, ClusterWide: true,
				}}
				return []operator.Controller{component.New(renderer, options)}, nil
			},
		}
	}
}

func editSettings(ctx context.Context, w *fault.World) error {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "desk"}}
	return w.Client.Patch(ctx, settings, client.RawPatch(types.MergePatchType, []byte(`{"data":{"greeting":"edited"}}`)))
}
