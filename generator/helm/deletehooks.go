package helm

import (
	"slices"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
)

// A hook of deletions is a delete hook of the component, in a wave of its own. One that is a hook of installations or
// upgrades as well is both: it takes the place of that dependent when the component is deleted.

// deletion is an event of a deletion.
type deletion struct {
	event release.HookEvent
	on    func(*component.Dependent) *component.Dependent
	hooks []hook
}

// deletions returns copies of the hooks of deletions, in Helm's order.
func deletions(hooks []hook) []deletion {
	all := []deletion{
		{event: release.HookPreDelete, on: (*component.Dependent).PreDelete},
		{event: release.HookPostDelete, on: (*component.Dependent).PostDelete},
	}
	for i := range all {
		for _, h := range hooks {
			if slices.Contains(h.events, all[i].event) {
				h.object = h.object.DeepCopy()
				all[i].hooks = append(all[i].hooks, h)
			}
		}
		inOrder(all[i].hooks)
	}
	return all
}

// addDeletion adds the hooks of an event of a deletion.
func (o *output) addDeletion(d deletion) error {
	o.event = string(d.event)
	for i, h := range d.hooks {
		err := o.add(h.document, func(_ *unstructured.Unstructured, dependent *component.Dependent) {
			if d.on(dependent).Wave(int16(i)); h.runs() {
				dependent.Policies(api.Policies{UpdatePolicy: api.UpdatePolicyRecreate})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// storage is the kind of what stores delete hooks, if there are some among objects.
func storage(objects []client.Object, operator string) []schema.GroupVersionKind {
	if slices.ContainsFunc(objects, func(o client.Object) bool { return o.GetAnnotations()[operator+"/apply-on"] != "" }) {
		return []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}}
	}
	return nil
}
