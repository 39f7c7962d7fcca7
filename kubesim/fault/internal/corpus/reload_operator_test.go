package corpus

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// Reload re-creates konpyutaika/nifikop#49. When the configuration in the spec changes, it writes the config
// map, records that the node is out of sync, deletes a node that is recorded so, and makes it again, which
// then loads the new configuration. Killed after the config map is written, it finds no change, and the node
// keeps the old configuration forever.
//
// Fixed, it compares what the node has loaded with the config map.
type Reload struct {
	kit

	Fixed bool
}

// outOfSync is the annotation of an Item whose node has to be started again. Nifikop has it in the status.
const outOfSync = "corpus.example.com/out-of-sync"

// SetupReload sets up a Reload: Items are clusters, and of each there are two Parts, NAME-config, whose Text
// is the configuration, and NAME-node, whose Text is what it has loaded at its start.
func SetupReload(fixed bool) func(ctrl.Manager, *fault.Env) error {
	return ofParts(func(k kit, _ ctrl.Manager) reconcile.Reconciler { return &Reload{k, fixed} })
}

// Reconcile implements reconcile.Reconciler.
func (r *Reload) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	item, err := r.item(ctx, req)
	if item == nil {
		return ctrl.Result{}, err
	}
	config, err := r.configure(ctx, item)
	if err != nil {
		return ctrl.Result{}, err
	}
	node, err := r.part(ctx, item, "-node")
	if err != nil {
		return ctrl.Result{}, err
	}
	old := item.Annotations[outOfSync] != ""
	if r.Fixed {
		old = node != nil && node.Spec.Text != config.Spec.Text
	}
	switch {
	case node == nil:
		if _, err := r.create(ctx, item, "-node", Spec{Text: config.Spec.Text}); err != nil {
			return ctrl.Result{}, err
		}
		if item.Annotations[outOfSync] != "" {
			annotate(item, outOfSync, "")
			err = r.Update(ctx, item)
		}
	case old:
		return ctrl.Result{RequeueAfter: soon}, r.remove(ctx, node)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, item)
}

// configure writes the configuration, and records that it has changed.
func (r *Reload) configure(ctx context.Context, item *Item) (*Part, error) {
	config, err := r.part(ctx, item, "-config")
	if err != nil {
		return nil, err
	}
	if config == nil {
		return r.create(ctx, item, "-config", Spec{Text: item.Spec.Text})
	}
	if config.Spec.Text == item.Spec.Text {
		return config, nil
	}
	config.Spec.Text = item.Spec.Text
	if err := r.Update(ctx, config); err != nil || r.Fixed {
		return config, err
	}
	annotate(item, outOfSync, "yes")
	return config, r.Update(ctx, item)
}
