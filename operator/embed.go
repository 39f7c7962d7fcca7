package operator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Embedded is an operator on a manager that the caller makes, starts and serves: of a program that
// runs more than this operator, or of a test kit.
type Embedded struct {
	design   *design
	settings settings
}

// Embed prepares the operator that o describes, with flags of its manager. Those about addresses,
// logs, traces and the cluster are parsed and have no effect. It needs no cluster.
func Embed(o Options, flags ...string) (*Embedded, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	e := &Embedded{}
	if _, err := e.settings.parse(o, flags); err != nil {
		return nil, err
	}
	var err error
	if e.design, err = o.read(); err != nil {
		return nil, err
	}
	return e, e.design.govern(e.settings)
}

// ManagerOptions are those of [Main]'s manager that decide what the operator sees, and when it works:
// kinds, cache, client and leader election.
func (e *Embedded) ManagerOptions() manager.Options { return e.design.managerOptions(e.settings) }

// SetupWithManager adds the controllers, and what [Options].Setup adds, to a manager that was made
// with [Embedded.ManagerOptions]. It adds no readiness checks of its own. Call it once.
func (e *Embedded) SetupWithManager(mgr manager.Manager) error {
	for _, c := range e.design.controllers {
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return e.design.setup(mgr)
}

// setup adds what is not a controller of ours.
func (d *design) setup(mgr manager.Manager) error {
	if d.options.Setup == nil {
		return nil
	}
	if err := d.options.Setup(mgr); err != nil {
		return fmt.Errorf("operator.Options.Setup: %w", err)
	}
	return nil
}

// managerOptions are what the design and the flags decide of a manager; what belongs to the process,
// such as its addresses and its end, is not among it.
func (d *design) managerOptions(s settings) manager.Options {
	secret := &corev1.Secret{}
	return manager.Options{
		Scheme:           d.scheme,
		LeaderElection:   s.leaderElect,
		LeaderElectionID: d.terms.Installation,
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: s.cached(),
			ByObject:          map[client.Object]cache.ByObject{secret: {Transform: stripSecret}},
		},
		// Secrets are read live, because the cache holds nothing but their metadata.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{secret}}},
	}
}
