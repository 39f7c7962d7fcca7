package packaging

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// bundle adds a bundle for the Operator Lifecycle Manager. There is none for an operator with webhooks: the manager issues
// their certificate in a way of its own.
func (m Model) bundle(files map[string][]byte) error {
	if len(m.Objects.Webhooks) > 0 {
		return nil
	}
	csv, err := m.csv()
	if err != nil {
		return err
	}
	objects := map[string]client.Object{m.Installation + ".clusterserviceversion.yaml": csv}
	for _, crd := range m.Objects.CRDs {
		objects[crd.GetName()+".crd.yaml"] = crd
	}
	for name, o := range objects {
		if files["olm/manifests/"+name], err = YAML(o); err != nil {
			return err
		}
	}
	const prefix = "operators.operatorframework.io.bundle."
	files["olm/metadata/annotations.yaml"], err = yaml.Marshal(map[string]any{"annotations": map[string]any{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": m.Installation, prefix + "channels.v1": "stable", prefix + "channel.default.v1": "stable",
	}})
	return err
}

// csv returns the ClusterServiceVersion.
func (m Model) csv() (*unstructured.Unstructured, error) {
	var kinds []string
	var owned []any
	for _, o := range m.Objects.CRDs {
		crd, ok := o.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			continue
		}
		kinds = append(kinds, crd.Spec.Names.Kind)
		for _, v := range crd.Spec.Versions {
			if v.Served {
				owned = append(owned, map[string]any{
					"name": crd.Name, "version": v.Name, "kind": crd.Spec.Names.Kind, "displayName": crd.Spec.Names.Kind, "description": about(v, crd.Spec.Names.Kind),
				})
			}
		}
	}
	strategy, err := m.strategy()
	if err != nil {
		return nil, err
	}
	var modes []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": mode == "AllNamespaces"})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"displayName": m.Name, "description": "The operator " + m.Name + " manages objects of these kinds: " + strings.Join(kinds, ", ") + ".",
		"version": m.Version, "maturity": "alpha", "provider": map[string]any{"name": m.Name}, "keywords": []any{m.Name},
		"installModes": modes, "install": map[string]any{"strategy": "deployment", "spec": strategy},
		"customresourcedefinitions": map[string]any{"owned": owned},
	}}}
	u.SetAPIVersion("operators.coreos.com/v1alpha1")
	u.SetKind("ClusterServiceVersion")
	u.SetName(m.Installation + ".v" + m.Version)
	u.SetAnnotations(map[string]string{"capabilities": "Basic Install", "containerImage": m.Image})
	return u, nil
}

// about returns what the definition says of a kind.
func about(v apiextensionsv1.CustomResourceDefinitionVersion, kind string) string {
	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil && v.Schema.OpenAPIV3Schema.Description != "" {
		return v.Schema.OpenAPIV3Schema.Description
	}
	return kind
}

// strategy returns the Deployment and the permissions, of which the manager makes roles.
func (m Model) strategy() (map[string]any, error) {
	var namespaced, cluster []rbacv1.PolicyRule
	for _, o := range m.Objects.Access {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			cluster = append(cluster, o.Rules...)
		case *rbacv1.Role:
			namespaced = append(namespaced, o.Rules...)
		}
	}
	deployment := m.Objects.Deployment
	content, err := fields(deployment)
	if err != nil {
		return nil, err
	}
	account := deployment.Spec.Template.Spec.ServiceAccountName
	labels := map[string]any{}
	for k, v := range deployment.Labels {
		labels[k] = v
	}
	strategy := map[string]any{"deployments": []any{map[string]any{"name": deployment.Name, "spec": content["spec"], "label": labels}}}
	for field, rules := range map[string][]rbacv1.PolicyRule{"permissions": namespaced, "clusterPermissions": cluster} {
		var all []any
		for _, rule := range rules {
			r, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rule)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		if len(all) > 0 {
			strategy[field] = []any{map[string]any{"serviceAccountName": account, "rules": all}}
		}
	}
	return strategy, nil
}
