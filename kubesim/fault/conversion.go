package fault

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/run"
	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
)

// convertByTypes lets the operator convert CRDs whose manifests say nothing about it, as kubebuilder's do until
// kustomize has patched them, although the operator's types know how. It returns their names.
func convertByTypes(crds []*apiextensionsv1.CustomResourceDefinition, s *runtime.Scheme) (names []string) {
	for _, crd := range crds {
		c := crd.Spec.Conversion
		if len(crd.Spec.Versions) < 2 || c != nil && c.Strategy == apiextensionsv1.WebhookConverter || !haveHub(crd, s) {
			continue
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
					Namespace: "operator-system", Name: run.Optional, Path: new("/convert"),
				}},
			},
		}
		names = append(names, crd.Name)
	}
	return names
}

// haveHub reports whether the types of a CRD's versions can be converted into each other.
func haveHub(crd *apiextensionsv1.CustomResourceDefinition, s *runtime.Scheme) bool {
	for _, v := range crd.Spec.Versions {
		o, err := s.New(schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind})
		if err != nil {
			continue
		}
		if ok, err := conversion.IsConvertible(s, o); err == nil && ok {
			return true
		}
	}
	return false
}

// ofConversion is the note about CRDs that the operator converts without being told.
func ofConversion(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the manifests of %s name no conversion webhook, but the types are convertible, so the operator's converter is called if it registers one; give the manifests that kustomize makes", strings.Join(names, ", "))}
}

// ofPatches is the note about files that only kustomize understands.
func ofPatches(o Operator) []string {
	patches := apiserver.Patches(o.CRDs, o.Webhooks, o.RBAC)
	if len(patches) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: patches for kustomize, which are not applied; if they matter, give what kustomize prints, with fault.Manifests", strings.Join(patches, ", "))}
}
