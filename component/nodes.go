package component

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
)

// drivers are those of the options and that of functions, by the kinds of their nodes.
func (o Options[T]) drivers(scheme *runtime.Scheme) (map[schema.GroupKind]node.Driver, error) {
	all := map[schema.GroupKind]node.Driver{functionKind().GroupKind(): functions{}}
	for _, d := range o.Drivers {
		kind, err := apiutil.GVKForObject(d.About().Object, scheme)
		if err != nil {
			return nil, fmt.Errorf("component: the kind of a driver is not known: %w; add its types to Options.Scheme", err)
		}
		if all[kind.GroupKind()] != nil {
			return nil, fmt.Errorf("component: Options.Drivers has two drivers for %s; remove one", kind.GroupKind())
		}
		all[kind.GroupKind()] = d
	}
	return all, nil
}

// DryRunSafe implements [loop.DryRunner]: there are no hooks, and all drivers hold back what changes another system.
func (w *worker[T]) DryRunSafe() bool {
	for _, d := range w.options.Drivers {
		if safe, ok := d.(loop.DryRunner); !ok || !safe.DryRunSafe() {
			return false
		}
	}
	return !w.hooks.any(postRead, preReconcile, postReconcile, preDelete, postDelete)
}

// driverNeeds are the permissions that drivers require, and what is wrong with the drivers.
func (o Options[T]) driverNeeds() (needs []loop.Need, problem error) {
	for _, d := range o.Drivers {
		about := d.About()
		needs, problem = append(needs, about.Needs...), errors.Join(problem, about.Problem)
	}
	return needs, problem
}

// driverRunner runs in a manager.
type driverRunner func(ctx context.Context)

// Start implements manager.Runnable.
func (r driverRunner) Start(ctx context.Context) error {
	r(ctx)
	<-ctx.Done()
	return nil
}

// startDrivers tells the drivers whom to wake.
func (c *Controller[T]) startDrivers(ctx context.Context) {
	for _, d := range c.worker.options.Drivers {
		if s, ok := d.(node.Starter); ok {
			s.Start(ctx, func(component types.NamespacedName, after time.Duration) {
				c.engine.WakeNodes(component, after)
				c.waker.Later(component, after)
			})
		}
	}
}

// observed returns what returns a node as it was when it was last ready; nil if it never was.
func (p *pass[T]) observed() func(key string) (client.Object, error) {
	inventory, drivers := p.obj.GetStatus().Inventory, p.engine.Drivers
	return func(key string) (client.Object, error) {
		for _, item := range inventory {
			if item.Key() != key || len(item.Record) == 0 {
				continue
			}
			if d := drivers[schema.GroupKind{Group: item.Group, Kind: item.Kind}]; d != nil {
				return d.Observed(item.Record)
			}
		}
		return nil, nil
	}
}

// allObserved returns what is observed of all nodes.
func (p *pass[T]) allObserved() ([]any, error) {
	var all []any
	observed := p.observed()
	for _, item := range p.obj.GetStatus().Inventory {
		if len(item.Record) == 0 {
			continue
		}
		o, err := observed(item.Key())
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", item.Kind, item.Name, err)
		}
		if o != nil {
			all = append(all, item.Key(), o)
		}
	}
	return all, nil
}

// expect has objects rendered that are made from nodes which are ready now.
func (p *pass[T]) expect(r *engine.Result) {
	if len(r.Unrendered) == 0 || r.Err != nil || r.Recorded {
		return
	}
	observed := p.observed()
	for _, key := range r.Unrendered {
		if o, err := observed(key); o != nil || err != nil {
			r.Again = soon
		}
	}
	if r.Ready {
		r.Ready, r.Waiting = false, "waiting for "+r.Unrendered[0]+", from which objects are made"
	}
}

// durable returns the record of a node as the API server has it, nil if there is none.
func (p *pass[T]) durable(ctx context.Context, key string) ([]byte, error) {
	p.durables.Lock()
	defer p.durables.Unlock()
	if p.records == nil {
		records, err := p.readRecords(ctx)
		if err != nil {
			return nil, err
		}
		p.records = records
	}
	return p.records[key], nil
}

// readRecords reads the component from the API server, and requires that it is as this pass has it.
func (p *pass[T]) readRecords(ctx context.Context) (map[string][]byte, error) {
	now := p.run.Obj
	if !p.run.Vanished() {
		now = cached.New[T]()
		err := p.run.Live().Get(ctx, client.ObjectKeyFromObject(p.obj), now)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read the component: %w", err)
		case err != nil, now.GetUID() != p.obj.GetUID(), now.GetGeneration() != p.obj.GetGeneration(),
			now.GetDeletionTimestamp().IsZero() != p.obj.GetDeletionTimestamp().IsZero():
			return nil, loop.Outdated(errors.New("the component has changed meanwhile"))
		}
	}
	items, err := p.itemsOf(ctx, now)
	if err != nil {
		return nil, err
	}
	records := map[string][]byte{}
	for _, item := range items {
		records[item.Key()] = item.Record
	}
	return records, nil
}
