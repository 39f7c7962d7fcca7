package operator

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/manifest"
)

// readCRDs returns the definitions in the YAML files of a file system, sorted by name.
func readCRDs(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if files == nil {
		return nil, nil
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := manifest.Documents(files, func(document []byte) error {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(document, &crd); err != nil {
			return err
		}
		switch crd.Kind {
		case "": // a document that contains only comments
		case "CustomResourceDefinition":
			crds = append(crds, &crd)
		default:
			return fmt.Errorf("contains a %s; only CustomResourceDefinitions are allowed", crd.Kind)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the operator's CRDs: %w", err)
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return strings.Compare(a.Name, b.Name)
	})
	return crds, nil
}

// resources maps kinds to the names of their resources in URLs and roles.
type resources struct {
	crds []*apiextensionsv1.CustomResourceDefinition
}

// of returns the resource of a kind, from the operator's CRDs or else by the rules that Kubernetes
// follows for its own kinds.
func (r resources) of(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	ours := false
	for _, crd := range r.crds {
		if crd.Spec.Group != gvk.Group {
			continue
		}
		ours = true
		if crd.Spec.Names.Kind == gvk.Kind {
			return gvk.GroupVersion().WithResource(crd.Spec.Names.Plural), nil
		}
	}
	if ours {
		return schema.GroupVersionResource{}, fmt.Errorf("no CRD of the operator defines %s; generate the CRDs again", gvk.GroupKind())
	}
	return gvk.GroupVersion().WithResource(plural(gvk.Kind)), nil
}

// plural returns the resource of a kind by the rules of English.
func plural(kind string) string {
	if end := len(kind) - 2; end >= 0 && kind[end+1] == 'y' && strings.IndexByte("aeiou", kind[end]) >= 0 {
		return strings.ToLower(kind) + "s" // as in gateways; apimachinery would make it gatewaies
	}
	guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return guess.Resource
}

// names returns what people call a kind on a command line, in lower case: its name, plural and short names, and those
// with its group.
func (r resources) names(gvk schema.GroupVersionKind) []string {
	all := []string{strings.ToLower(gvk.Kind), plural(gvk.Kind)}
	if crd := r.definition(gvk.GroupKind()); crd != nil {
		all = append(append(all[:1], crd.Spec.Names.Plural, crd.Spec.Names.Singular), crd.Spec.Names.ShortNames...)
	}
	for _, name := range slices.Clone(all) {
		all = append(all, name+"."+gvk.Group)
	}
	return all
}

// defines reports whether the operator's CRDs define the kind.
func (r resources) defines(gk schema.GroupKind) bool { return r.definition(gk) != nil }

// clusterScoped reports whether the operator's CRDs define the kind as cluster-scoped.
func (r resources) clusterScoped(gk schema.GroupKind) bool {
	crd := r.definition(gk)
	return crd != nil && crd.Spec.Scope == apiextensionsv1.ClusterScoped
}

// servesStatus reports whether the status of a kind can be written, as far as the operator knows.
func (r resources) servesStatus(gvk schema.GroupVersionKind) bool {
	crd := r.definition(gvk.GroupKind())
	return crd == nil || !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == gvk.Version && (v.Subresources == nil || v.Subresources.Status == nil)
	})
}

func (r resources) definition(gk schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	for _, crd := range r.crds {
		if crd.Spec.Group == gk.Group && crd.Spec.Names.Kind == gk.Kind {
			return crd
		}
	}
	return nil
}
