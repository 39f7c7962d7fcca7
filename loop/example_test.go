package loop_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// sizer reports the size that a Probe asks for, once the Probe that it needs exists.
type sizer struct{}

func (sizer) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	if name := r.Obj.Spec.Needs; name != "" {
		key := types.NamespacedName{Namespace: r.Obj.Namespace, Name: name}
		if err := r.Client().Get(ctx, key, &probe.Probe{}); err != nil {
			return loop.WaitFor("WaitingForProbe", loop.Dep{Kind: "Probe", Name: name, Why: "does not exist"})
		}
	}
	r.Obj.Status.Note = fmt.Sprintf("%d wide", r.Obj.Spec.Size)
	return loop.Done()
}

// A controller of Probes that waits for other Probes by name. The permissions it needs
// follow from what it is made of.
func ExampleNew() {
	needs := trigger.Reference[*probe.Probe]{
		To: &probe.Probe{},
		Names: func(p *probe.Probe) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
		},
	}
	c := loop.New(sizer{}, loop.Options[*probe.Probe]{Sources: []trigger.Source[*probe.Probe]{needs}})

	scheme := runtime.NewScheme()
	if err := probe.AddToScheme(scheme); err != nil {
		panic(err)
	}
	permissions, err := c.Needs(scheme)
	if err != nil {
		panic(err)
	}
	for _, p := range permissions {
		fmt.Println(p.Kind+"/"+p.Subresource, strings.Join(p.Verbs, ","))
	}
	// Output:
	// Probe/ get,list,watch,patch
	// Probe/status patch
	// Event/ create,patch
	// Probe/ list,watch
}
