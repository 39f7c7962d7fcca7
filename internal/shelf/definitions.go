package shelf

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// Definitions implements [verify.DefinitionManager] for gadgets.
type Definitions struct{}

// Dependencies implements [verify.DefinitionManager].
func (Definitions) Dependencies(g *thing.Gadget) (d verify.DependencyDefinitions) {
	if g.Spec.Owner != "" || g.Name == "" {
		d.Owner = &external.Dependency{To: &thing.Gadget{}, Name: g.Spec.Owner}
	}
	if g.Spec.Gadget != "" {
		d.Dependencies = append(d.Dependencies, external.Dependency{To: &thing.Gadget{}, Name: g.Spec.Gadget})
	}
	if g.Spec.ConfigMap != "" || g.Name == "" {
		d.Dependencies = append(d.Dependencies, external.Dependency{To: &corev1.ConfigMap{}, Name: g.Spec.ConfigMap})
	}
	return d
}
