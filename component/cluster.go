package component

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/target"
)

// settle notes in which cluster the dependents are, and by which Secrets it is reached. If the component has
// dependents in another one, nothing goes on: those would be left there, and those of the inventory would be
// taken for deleted. Of a cluster that does not say which it is, it is only known that the same Secrets are for
// the same one.
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
	sameSecrets := len(status.KubeconfigSecrets) == 0 || slices.Equal(status.KubeconfigSecrets, p.secrets)
	name := cmp.Or(was, p.clusterID)
	key := p.options.Name + "/left-behind"
	switch {
	case !slices.ContainsFunc(status.Inventory, inCluster), was == target.Unknown && sameSecrets:
		status.Cluster = now
	case was == now && was != target.Unknown, was != "" && now == target.Unknown && sameSecrets: // as before
	case p.obj.GetAnnotations()[key] == name:
		p.engine.Forget(p.obj.GetUID())
		status.Inventory, status.Cluster = slices.DeleteFunc(slices.Clone(status.Inventory), inCluster), now
	case now == target.Unknown:
		return fmt.Errorf("the dependents are in cluster %s, and it is not known for which one the kubeconfig is; let it get namespace kube-system there, "+
			"change it back, or set %s: %s to leave them there for good", name, key, name)
	default:
		return fmt.Errorf("the dependents are in cluster %s, and the kubeconfig is for cluster %s; change it back, or set %s: %s to leave them there for good",
			name, cmp.Or(now, p.clusterID), key, name)
	}
	status.KubeconfigSecrets = slices.Clone(p.secrets)
	return nil
}

// inCluster reports whether a dependent is in a cluster. External resources and functions are in none.
func inCluster(item api.InventoryItem) bool { return len(item.Record) == 0 }
