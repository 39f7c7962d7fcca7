package component

import (
	"cmp"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/internal/metric"
)

var (
	operations     = metric.DependentOperations.CounterVec()
	failures       = metric.DependentErrors.CounterVec()
	dependents     = metric.Dependents.GaugeVec()
	clients        = metric.Clients.GaugeVec()
	clientsCreated = metric.ClientsCreated.CounterVec()
)

// registerMetrics adds them to controller-runtime's registry; doing so again is harmless.
func registerMetrics() {
	metric.Registered(operations)
	metric.Registered(failures)
	metric.Registered(dependents)
	metric.Registered(clients)
	metric.Registered(clientsCreated)
}

// count counts what was done to a dependent.
func count(operator string, d engine.Deed) {
	operation := map[string]string{
		engine.Created: "create", engine.Updated: "update", engine.UpdateError: "update", engine.Deleted: "delete", engine.DeleteError: "delete",
	}[d.What]
	result := "ok"
	if d.Err != nil {
		result = "error"
		failures.WithLabelValues(operator, metric.Reason(d.Err)).Inc()
	}
	operations.WithLabelValues(operator, operation, result).Inc()
}

// countClient counts a target that was started, or that was stopped.
func countClient(operator string, started bool) {
	if started {
		clientsCreated.WithLabelValues(operator).Inc()
		clients.WithLabelValues(operator).Inc()
		return
	}
	clients.WithLabelValues(operator).Dec()
}

// tallies are how many dependents components have, by their health.
type tallies struct {
	mu  sync.Mutex
	all map[types.UID]map[string]int
}

// set replaces the numbers of a component. Without an inventory, as at the end of a deletion, it forgets the component.
func (t *tallies) set(operator string, component types.UID, inventory []api.InventoryItem) {
	now := map[string]int{}
	for i := range inventory {
		now[tallied(&inventory[i])]++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for status, n := range t.all[component] {
		dependents.WithLabelValues(operator, status).Sub(float64(n))
	}
	for status, n := range now {
		dependents.WithLabelValues(operator, status).Add(float64(n))
	}
	if t.all == nil {
		t.all = map[types.UID]map[string]int{}
	}
	if t.all[component] = now; len(now) == 0 {
		delete(t.all, component)
	}
}

// tallied is how a dependent is counted.
func tallied(item *api.InventoryItem) string {
	if item.Phase == api.PhaseCompleted {
		return string(api.PhaseCompleted)
	}
	return cmp.Or(item.Status, "Missing")
}
