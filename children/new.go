package children

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Options configure a [Controller]. The zero value suits a controller that does nothing but apply its children.
type Options[T client.Object] struct {
	// Reconciler calls [Set.Apply] and does the rest. It may be a [loop.Cleaner], whose Cleanup is called before
	// children are released. It cannot be one of [loop.Wrap], which does not get what [Set.Apply] needs. Nil means that a
	// pass applies the children and nothing else.
	Reconciler loop.Reconciler[T]
	// ManualOwnerRefs means that no owner reference is written: those in what the functions of children return are the
	// author's business. A child without one to its owner is deleted before its owner, which gets a finalizer for that.
	ManualOwnerRefs bool
	// Loop configures the loop. Name is part of the labels on children: if it is changed later, the operator loses its
	// children. Finalizer defaults to "<name>.<group>/children". Two controllers of one kind need different names.
	Loop loop.Options[T]
}

// Controller runs passes over objects that have children. Make one with [New]; its zero value is not usable.
type Controller[T client.Object] struct {
	*loop.Controller[T]

	set     *Set[T]
	options Options[T]
}

// New makes the controller of the objects whose children are in set. It panics if set is nil or has a controller
// already. [Controller.SetupWithManager] and [Controller.Needs] report all other problems.
func New[T client.Object](set *Set[T], o Options[T]) *Controller[T] {
	if set == nil || set.wiring != nil {
		panic("children: New needs a set that no other controller has; make one with children.Of for each")
	}
	set.wiring = &wiring[T]{memory: newMemory(), waker: new(trigger.Waker), settings: settings{manual: o.ManualOwnerRefs, loopName: o.Loop.Name}}
	options := o.Loop
	options.Problem = errors.Join(options.Problem, set.check())
	if options.Revision != "" {
		options.Problem = errors.Join(options.Problem, errors.New("Loop.Revision has no use here, because a process that starts looks at all children; leave it empty"))
	}
	options.Sources = append(slices.Clone(options.Sources), set.sources(set.wiring.waker)...)
	return &Controller[T]{Controller: loop.New[T](&worker[T]{set: set, author: o.Reconciler}, options), set: set, options: o}
}

// Govern sets the operator's settings. An operator calls it before SetupWithManager.
func (c *Controller[T]) Govern(terms loop.Terms) {
	c.set.wiring.terms = terms
	c.Controller.Govern(terms)
}

// SetupWithManager adds the controller to mgr.
func (c *Controller[T]) SetupWithManager(mgr manager.Manager) error {
	if err := c.set.check(); err != nil {
		return err
	}
	if err := c.wire(mgr); err != nil {
		return fmt.Errorf("set up the children of %s: %w", c.set.wiring.owner.Kind, err)
	}
	if err := c.Controller.SetupWithManager(mgr); err != nil {
		return err
	}
	return c.watchOrphans(mgr)
}

// Needs returns the permissions that the controller needs: those of the loop, and those to manage its children.
func (c *Controller[T]) Needs(scheme *runtime.Scheme) ([]loop.Need, error) {
	needs, err := c.Controller.Needs(scheme)
	if err != nil {
		return nil, err
	}
	owner, err := c.GroupVersionKind(scheme)
	if err != nil {
		return nil, err
	}
	kinds, err := kindsOf(c.set.children, c.set.wiring.settings, scheme)
	if err != nil {
		return nil, err
	}
	if !c.options.ManualOwnerRefs { // an owner reference that blocks the deletion of the owner needs it in some clusters
		needs = append(needs, loop.Need{GroupVersionKind: owner, Subresource: "finalizers", Verbs: []string{"update"}})
	}
	for _, k := range kinds {
		needs = append(needs, loop.Need{
			GroupVersionKind: k.gvk, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, ClusterWide: k.elsewhere,
		})
	}
	return needs, nil
}

// worker is the reconciler of a controller.
type worker[T client.Object] struct {
	set    *Set[T]
	author loop.Reconciler[T]
}

var _ loop.Decorator[client.Object] = (*worker[client.Object])(nil)

// Reconcile implements [loop.Reconciler].
func (w *worker[T]) Reconcile(ctx context.Context, r *loop.Run[T]) loop.Outcome {
	if w.author != nil {
		return w.author.Reconcile(ctx, r)
	}
	o, _ := w.set.Apply(ctx, r).Pending()
	return o
}

// Cleanup implements [loop.Cleaner].
func (w *worker[T]) Cleanup(ctx context.Context, r *loop.Run[T]) loop.CleanupOutcome {
	if c, ok := w.author.(loop.Cleaner[T]); ok {
		if o := c.Cleanup(ctx, r); !o.Done() {
			return o
		}
	}
	return w.set.wiring.cleanup(ctx, r.Obj)
}

// Release implements [loop.Decorator].
func (w *worker[T]) Release(ctx context.Context, r *loop.Run[T]) (done bool, err error) {
	left, err := w.set.wiring.letGo(ctx, r.Obj)
	return left == 0, err
}

// Unwrap implements [loop.Decorator].
func (w *worker[T]) Unwrap() loop.Reconciler[T] { return w.author }

// Finalizer implements [loop.Decorator].
func (w *worker[T]) Finalizer(gvk schema.GroupVersionKind) (name, why string) {
	var reasons []string
	if _, ok := w.author.(loop.Cleaner[T]); ok {
		reasons = append(reasons, "the controller cleans up before an object is deleted")
	}
	for _, c := range w.set.children {
		switch {
		case c.protected && c.elsewhere:
			reasons = append(reasons, fmt.Sprintf("child %q is protected, and garbage collection does not reach it", c.name))
		case c.protected:
			reasons = append(reasons, fmt.Sprintf("child %q is protected", c.name))
		case c.elsewhere:
			reasons = append(reasons, fmt.Sprintf("garbage collection does not reach child %q", c.name))
		}
	}
	if w.set.wiring.manual {
		reasons = append(reasons, "children have no owner references")
	}
	return namesOf(w.set.wiring.loopName, gvk.GroupKind()).finalizer(), strings.Join(reasons, ", and ")
}
