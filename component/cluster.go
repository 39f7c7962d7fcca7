package component

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/target"
)

// settle notes in which cluster the dependents are. If the component has dependents in another one, nothing
// goes on: those would be left there, and those of the inventory would be taken for deleted.
func (p *pass[T]) settle(ctx context.Context, t *target.Target) error {
	now, err := t.Cluster(ctx)
	if err != nil {
		return err
	}
	if p.clusterID == "" {
		if p.clusterID, err = p.cluster.Get(ctx, p.run.Live()); err != nil {
			return err
		}
	}
	if now == p.clusterID { // by way of a kubeconfig
		now = ""
	}
	status := p.obj.GetStatus()
	was := status.Cluster
	switch {
	case was == now:
		return nil
	case now == target.Unknown && was != "":
		return nil // as before
	case was == target.Unknown, !slices.ContainsFunc(status.Inventory, inCluster):
		status.Cluster = now
		return nil
	}
	name := cmp.Or(was, p.clusterID)
	key := p.options.Name + "/left-behind"
	if p.obj.GetAnnotations()[key] == name {
		p.engine.Forget(p.obj.GetUID())
		status.Inventory, status.Cluster = slices.DeleteFunc(slices.Clone(status.Inventory), inCluster), now
		return nil
	}
	return fmt.Errorf("the dependents are in cluster %s, and the kubeconfig is for cluster %s; change it back, or set %s: %s to leave them there for good",
		name, cmp.Or(now, p.clusterID), key, name)
}

// inCluster reports whether a dependent is in a cluster. External resources and functions are in none.
func inCluster(item api.InventoryItem) bool { return len(item.Record) == 0 }
