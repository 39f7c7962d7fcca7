// Command chart is an operator of components: each Helpdesk object stands for what a Helm chart renders.
package main

import (
	"embed"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/helm"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/chart/api/v1"
)

// region: operator

//go:embed crds
var crds embed.FS

//go:embed all:chart
var chart embed.FS // all: has the files whose names begin with _

// values returns the values of the chart for a Helpdesk.
func values(h *v1.Helpdesk) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&h.Spec)
}

func controllers() ([]operator.Controller, error) {
	generator, err := helm.NewGenerator(chart, "chart", helm.Options{})
	if err != nil {
		return nil, err
	}
	everything := map[string]any{"cache": map[string]any{"enabled": true}}
	kinds, err := generator.Kinds(everything)
	if err != nil {
		return nil, fmt.Errorf("kinds of the chart: %w", err)
	}
	options := component.Options[*v1.Helpdesk]{Name: "helpdesks.trimtab.dev", Kinds: kinds}
	// The chart has ClusterRoles with permissions that the operator does not have.
	options.Loop.Needs = []loop.Need{{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Verbs: []string{"escalate", "bind"}, ClusterWide: true}}
	return []operator.Controller{component.New(helm.NewRenderer(generator, values), options)}, nil
}

func main() {
	operator.Main(operator.Options{Name: "chart", AddToScheme: v1.AddToScheme, CRDs: crds, Controllers: controllers})
}

// endregion: operator
