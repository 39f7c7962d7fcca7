package loop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/internal/cached"
)

// inputs stands for what a pass over obj works on. All metadata that a pass can write are part of it, so that a process that
// starts repeats a pass whose status was never written.
func (c *Controller[T]) inputs(obj client.Object) (string, error) {
	data, err := json.Marshal([]any{
		c.options.Revision, obj.GetGeneration(), obj.GetLabels(), obj.GetAnnotations(), obj.GetOwnerReferences(),
	})
	if err != nil {
		return "", fmt.Errorf("encode what the pass worked on: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// lastPass is what the status says about this pass for a process that starts later. earlier is what it said before.
func (p *pass[T]) lastPass(r conditions.Report, earlier *api.LastPass) *api.LastPass {
	if p.c.options.Revision == "" || !r.Applied || p.c.lastPassMissing.Load() {
		return nil
	}
	inputs, err := p.c.inputs(p.base)
	if err != nil {
		p.log.Error(err, "the next process will reconcile the object when it starts")
		return nil
	}
	last := &api.LastPass{Inputs: inputs}
	if p.next > 0 {
		last.Next = &metav1.Duration{Duration: p.next}
	}
	if earlier != nil && earlier.Inputs == inputs && near(earlier.Next, last.Next) {
		return earlier
	}
	return last
}

// near reports whether two delays are so close that it is not worth a write.
func near(was, is *metav1.Duration) bool {
	if was == nil || is == nil {
		return was == is
	}
	return was.Duration >= is.Duration/2 && was.Duration <= is.Duration+is.Duration/10
}

// lastPassUnserved reports whether a write of s was refused because the CRD lacks the field lastPass, which is then left
// out from now on.
func (p *pass[T]) lastPassUnserved(s *api.Status, err error) bool {
	if err == nil || s.LastPass == nil || !strings.Contains(err.Error(), "lastPass") || !strings.Contains(err.Error(), "not declared in schema") {
		return false
	}
	if !p.c.lastPassMissing.Swap(true) {
		p.log.Info("the CRD lacks status.lastPass, so all objects are reconciled at each start; generate the CRD again and apply it", "kind", p.c.gvk.Kind)
	}
	s.LastPass = nil
	return true
}

// checkRevision returns why a controller cannot have a revision.
func (c *Controller[T]) checkRevision() error {
	if c.options.Revision == "" {
		return nil
	}
	_, common := reporting(cached.New[T]())
	_, indexer := as[Indexer[T]](c.author)
	missed := func(what string) error {
		return fmt.Errorf("Options.Revision cannot be combined with %s, because what happens while no operator runs would be missed; leave one of them out", what)
	}
	switch {
	case !common:
		return fmt.Errorf("Options.Revision needs a kind with api.Status; embed it in the status of %T, or leave Revision empty", *new(T))
	case c.options.Generation == EveryChange:
		return missed("EveryChange")
	case len(c.options.Sources) > 0:
		return missed("Options.Sources")
	case indexer:
		return missed("IndexKeys")
	}
	return nil
}

// settled reports whether the last pass over obj succeeded, and nothing that it worked on has changed since. The
// status says so, and it does not count if managedFields show that somebody else wrote that.
func (c *Controller[T]) settled(obj T) bool {
	s, ok := reporting(obj)
	if !ok || c.options.Revision == "" || s.LastPass == nil {
		return false
	}
	generation := obj.GetGeneration()
	inputs, err := c.inputs(obj)
	return err == nil && s.LastPass.Inputs == inputs && s.AppliedGeneration == generation && s.ObservedGeneration == generation &&
		obj.GetDeletionTimestamp().IsZero() &&
		(c.finalizer == "" || controllerutil.ContainsFinalizer(obj, c.finalizer)) &&
		(c.unneeded == "" || !controllerutil.ContainsFinalizer(obj, c.unneeded)) &&
		meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady) &&
		!writtenByOthers(obj, string(c.fieldOwner()), fieldLastPass) && !writtenByOthers(obj, string(c.fieldOwner()), fieldApplied)
}

// resume takes an object over from the process before this one, if no pass over it is due. It puts the object into q for
// its next pass, some time in the interval, so that not all come at once.
func (c *Controller[T]) resume(obj T, q queue) bool {
	if !c.settled(obj) {
		return false
	}
	key := client.ObjectKeyFromObject(obj)
	s, _ := reporting(obj)
	c.memory.with(key, func(r *remembered) {
		r.meet(obj.GetUID())
		r.shown = shown{news: newsOf(s.State, s.Conditions), message: s.Message, as: countedAs(c.gvk.Kind, conditions.Report{State: s.State, Known: reasonSucceeded})}
		population.add(r.shown.as, 1)
	})
	within := c.options.maxInterval(key)
	if next := s.LastPass.Next; next != nil && (within == 0 || next.Duration < within) {
		within = next.Duration
	}
	if within <= 0 {
		return true
	}
	// The share differs from start to start: with the same one, restarts could put off the pass for ever.
	after := max(time.Duration(rand.Float64()*float64(within)), soon)
	req := reconcile.Request{NamespacedName: key}
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: new(lowPriority)}, req)
		return true
	}
	q.AddAfter(req, after)
	return true
}

// resumeCached is resume for an object in the cache.
func (c *Controller[T]) resumeCached(ctx context.Context, key types.NamespacedName, q queue) bool {
	if c.options.Revision == "" {
		return false
	}
	obj := cached.New[T]()
	return c.client.Get(ctx, key, obj, client.UnsafeDisableDeepCopy) == nil && c.resume(obj, q)
}
