package packaging

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// kustomize adds a base, and a component with what needs the Prometheus Operator and Grafana.
func (m Model) kustomize(files map[string][]byte) error {
	o := m.Objects
	base := map[string][]client.Object{
		"crds.yaml": o.CRDs, "namespace.yaml": o.Namespace, "access.yaml": slices.Concat(o.Access, o.Policies),
		"manager.yaml": slices.Concat(o.Services, []client.Object{o.Deployment}, o.Webhooks), "surroundings.yaml": m.surroundings(o),
	}
	if err := kustomization(files, "kustomize/base/", "Kustomization", base); err != nil {
		return err
	}
	monitoring := map[string][]client.Object{
		"prometheusrule.yaml": {m.prometheus(o, "PrometheusRule", map[string]any{"groups": m.AlertGroups})}, "dashboard.yaml": {m.dashboard(o)},
	}
	if m.metricsService(o) != nil {
		monitoring["servicemonitor.yaml"] = []client.Object{m.monitor(o)}
	}
	return kustomization(files, "kustomize/components/monitoring/", "Component", monitoring)
}

// kustomization adds a folder with the files that are not empty.
func kustomization(files map[string][]byte, folder, kind string, contents map[string][]client.Object) error {
	apiVersion := "kustomize.config.k8s.io/v1beta1"
	if kind == "Component" {
		apiVersion = "kustomize.config.k8s.io/v1alpha1"
	}
	var resources []string
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if len(contents[name]) == 0 {
			continue
		}
		text, err := YAML(contents[name]...)
		if err != nil {
			return err
		}
		files[folder+name] = text
		resources = append(resources, name)
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "resources": resources})
	files[folder+"kustomization.yaml"] = text
	return err
}
