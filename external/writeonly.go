package external

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/applied"
)

// WriteOnly returns a difference for each path in the spec of obj whose value was not certainly given to the resource. It is for
// fields that the API takes but does not show, and needs [Options.LastApplied]:
//
//	return external.Diff(
//		external.Field("spec.size", r.Object.Spec.Size, r.Have.Size),
//		external.WriteOnly(r.Object, "spec.pin"),
//	)
//
// It notices a new value in the spec. If somebody else changes the resource, nothing shows that. A resource that is adopted
// is given the value once. A field that is unset is not managed. A path is one of fields, without indices.
func WriteOnly(obj client.Object, paths ...string) Changes {
	spec := applied.SpecOf(obj)
	written := obj.GetAnnotations()[api.AnnotationLastApplied]
	var out Changes
	for _, path := range paths {
		if want, differs := applied.Differs(obj.GetUID(), spec, written, path); differs {
			out = append(out, Change{Path: path, Want: want, Sensitive: true})
		}
	}
	return out
}
