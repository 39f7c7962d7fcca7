package component_test

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/health/cel"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// region: health

// waitForMore are options of an operator that waits for the addresses of all Ingresses, and until
// cert-manager has issued what a Certificate asks for.
func waitForMore(o *component.Options[*bundle.Bundle]) {
	o.HealthCompiler = cel.Compiler{}
	o.Health = map[schema.GroupKind]health.Expressions{
		{Group: "networking.k8s.io", Kind: "Ingress"}: {
			Current: `size(status.?loadBalancer.?ingress.orValue([])) > 0`,
		},
		{Group: "cert-manager.io", Kind: "Certificate"}: {
			Current: `status.?conditions.orValue([]).exists(c, c.type == "Ready" && c.status == "True")`,
		},
	}
}

// endregion: health
