package operator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/cached"
)

// Embedded is an operator whose manager is created and started by the caller: a program that runs
// more than this operator, or a test kit.
type Embedded struct {
	design   *design
	settings settings
}

// Embed prepares the operator that o describes, with flags of its manager. Flags for addresses,
// logs, traces and the cluster are parsed but have no effect. Embed needs no cluster.
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

// Again returns the same operator for another manager, with the Controllers and the Setup of o. The other options must
// be those that e was made from: neither CRDs nor types are read again.
func (e *Embedded) Again(o Options) (*Embedded, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	d, err := o.design(e.design.scheme, e.design.resources.crds)
	if err != nil {
		return nil, err
	}
	return &Embedded{d, e.settings}, d.govern(e.settings)
}

// ManagerOptions returns the options with which to create the manager. As with [Main], they
// configure kinds, cache, client and leader election.
func (e *Embedded) ManagerOptions() manager.Options { return e.design.managerOptions(e.settings) }

// SetupWithManager adds the controllers, and whatever [Options].Setup adds, to a manager that was
// created with [Embedded.ManagerOptions]. It adds no readiness checks of its own, and does not serve
// [Options].Webhooks. Call it once.
func (e *Embedded) SetupWithManager(mgr manager.Manager) error {
	for _, c := range e.design.controllers {
		e.design.spansTo(c)
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return e.design.setup(mgr)
}

// setup calls [Options].Setup.
func (d *design) setup(mgr manager.Manager) error {
	if d.options.Setup == nil {
		return nil
	}
	if err := d.options.Setup(mgr); err != nil {
		return fmt.Errorf("operator.Options.Setup: %w", err)
	}
	return nil
}

// managerOptions returns the options that depend on the design and the flags. Options of the
// process, such as addresses and shutdown, are not included.
func (d *design) managerOptions(s settings) manager.Options {
	secret := &corev1.Secret{}
	return manager.Options{
		Scheme:           d.scheme,
		LeaderElection:   s.leaderElect,
		LeaderElectionID: d.terms.Installation,
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: s.cached(),
			ByObject:          map[client.Object]cache.ByObject{secret: {Transform: cached.Strip}},
		},
		// Secrets are read from the API server, because the cache holds only their metadata.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{secret}}},
	}
}
