package component

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/component/internal/inventory"
	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/internal/clusterid"
	"github.com/trimtab-dev/trimtab/internal/guard"
	"github.com/trimtab-dev/trimtab/loop"
)

// worker is the [loop.Reconciler] of a kind of components.
type worker[T Object] struct {
	renderer   Renderer[T]
	engine     *engine.Engine
	options    Options[T]
	hooks      hooks[T]
	references references
	targets    *target.Registry
	placements placements
	holds      holds
	cluster    clusterid.Reader
	timers     timers
	tallies    tallies
	recorder   events.EventRecorder // of events about dependents
	authors    authors
	// idleWatch is how long dependents of a kind are watched of which there are none any more. Zero means a
	// minute.
	idleWatch time.Duration
	// inventories are those of the components in the form that the engine works with.
	inventories inventory.Store
	// shards watches their ConfigMaps; nil if there are none.
	shards *inventory.Watch
}

// pass is one pass over one component.
type pass[T Object] struct {
	*worker[T]

	run *loop.Run[T]
	// obj is the component as hooks and the renderer see it. Its status becomes that of run.Obj.
	obj    T
	refs   *resolving
	config configuration
	place  placement
	// secrets are the names of the Secrets that are held for the component.
	secrets []string
	// clusterID identifies the cluster of the component; empty as long as it is not known.
	clusterID string
	// form is that of the inventory in the status; nil as long as the inventory is not loaded.
	form *inventory.Form
	// lostInventory: a part of it, or all, cannot be read, and was not found again.
	lostInventory bool
	// items is the inventory as the pass leaves it.
	items []api.InventoryItem
	// invalid is the error of the engine if it is that manifests are invalid.
	invalid error
	context passing
	now     time.Time
	// rendererVersion is what version returns; nil before it is asked.
	rendererVersion *string

	// records are those of nodes as the API server has them; nil before they are read. durables guards
	// them.
	durables sync.Mutex
	records  map[string][]byte
}

// open begins a pass.
func (w *worker[T]) open(run *loop.Run[T]) *pass[T] {
	p := &pass[T]{worker: w, run: run, obj: run.Obj, now: time.Now(), secrets: w.kubeconfigSecrets(run.Obj)}
	if w.hooks.any(postRead, preReconcile, postReconcile, preDelete, postDelete) {
		p.obj, _ = run.Obj.DeepCopyObject().(T)
	}
	p.context.name, p.context.local, p.context.component = w.options.Name, run.Client(), p.obj
	p.context.placement = client.ObjectKeyFromObject(p.obj)
	p.context.event = p.inform
	return p
}

// call calls the hooks of a point. A hook that does not return may still change what it was given: the
// pass goes on with a copy.
func (p *pass[T]) call(ctx context.Context, at hook) error {
	if !p.hooks.any(at) {
		return nil
	}
	lent, hooks, c := p.obj, &p.hooks, p.run.Client()
	before, _ := lent.DeepCopyObject().(T)
	in := p.context.with(lent)
	err := p.ask(ctx, at.String(), func() error { return hooks.call(in.into(ctx), at, c, lent) })
	if isAbandoned(err) {
		p.obj = before
	}
	return err
}

// ask calls the operator's code, and logs where it panicked.
func (p *pass[T]) ask(ctx context.Context, what string, f func() error) error {
	err := p.authors.call(ctx, p.obj, what, f)
	if stack := guard.Stack(err); stack != "" {
		p.run.Log().Error(err, "the "+what+" panicked", "stack", stack)
	}
	return err
}

// Reconcile implements [loop.Reconciler].
func (w *worker[T]) Reconcile(ctx context.Context, run *loop.Run[T]) loop.Outcome {
	p := w.open(run)
	s, err := p.reconcile(ctx)
	err = p.save(ctx, err)
	p.failed(&s, err)
	c := conclude(s)
	c.Drifted, c.Contended, c.PruneBlocked = s.Drifted, s.Contended, s.PruneBlocked
	return p.report(c).outcome(err)
}

// reconcile does the work of a pass over a component that is not being deleted.
func (p *pass[T]) reconcile(ctx context.Context) (situation, error) {
	s := situation{First: p.obj.GetStatus().ObservedGeneration == 0, Now: p.now}
	if err := p.load(ctx); err != nil {
		return s, err
	}
	if err := p.call(ctx, postRead); err != nil {
		return s, err
	}
	config, err := p.options.configurationOf(p.obj)
	p.configure(&s, config)
	switch {
	case err != nil:
		s.Invalid = true
		return s, err
	case config.Suspended:
		s.Suspended = true
		return s, nil
	}
	p.place = p.placement()
	if p.refs, err = p.references.resolve(ctx, p.obj, p.run.Live()); err != nil {
		return s, err
	}
	if s.Missing = strings.Join(p.refs.missing, ", "); s.Missing != "" {
		return s, nil
	}
	return s, p.apply(ctx, &s)
}

// configure takes over what the component says of how it is treated.
func (p *pass[T]) configure(s *situation, c configuration) {
	p.config = c
	p.context.placement = client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
	s.WaveTimeout = c.WaveTimeout
	s.Timeout, s.Retry, s.Requeue = c.Timeout, c.Retry, c.Requeue
	s.Spread = spreadOf(client.ObjectKeyFromObject(p.obj), c.Requeue)
	s.Since = p.timers.since(p.obj)
	p.warn("ShortInterval", c.short)
}

// warn records an event with the warnings about a component that were not given yet. It is one event: several for
// the same reason become a series that shows the first.
func (p *pass[T]) warn(reason string, texts []string) {
	if p.silent() {
		return
	}
	if texts = p.timers.unsaid(p.obj.GetUID(), texts); len(texts) > 0 {
		p.run.Event(corev1.EventTypeWarning, reason, strings.Join(texts, "; "))
	}
}

// inform records an event about the component.
func (p *pass[T]) inform(reason, note string) {
	if !p.silent() {
		p.run.Event(corev1.EventTypeNormal, reason, note)
	}
}

// apply has the engine bring the dependents to what is rendered.
func (p *pass[T]) apply(ctx context.Context, s *situation) error {
	if err := p.join(ctx); err != nil {
		return p.lost(err)
	}
	if err := p.hold(ctx); err != nil {
		return err
	}
	if p.hooks.any(preReconcile, postReconcile) {
		if err := p.refs.loadAll(ctx, p.obj); err != nil {
			return err
		}
	}
	if err := p.call(ctx, preReconcile); err != nil {
		return err
	}
	if err := p.revise(); err != nil {
		return err
	}
	c, err := p.component(ctx)
	if err != nil {
		return err
	}
	result := p.engine.Apply(p.context.into(ctx), c)
	if result.Stalled {
		p.invalid = result.Err
	}
	p.expect(&result)
	if result.Ready {
		if err := p.call(ctx, postReconcile); err != nil {
			result.Ready = false
			p.advance(s, result)
			return err
		}
	}
	p.advance(s, result)
	s.Drifted, s.Contended, s.PruneBlocked = result.Drifted, result.Contended, result.PruneBlocked
	s.Recorded, s.Ready, s.Broken, s.Waiting, s.Again = result.Recorded, result.Ready, result.Failed, result.Waiting, result.Again
	s.Reason, s.Skipped, s.Late = result.Reason, result.Skipped, result.Late
	s.Dependents = len(p.obj.GetStatus().Inventory)
	return p.lost(result.Err)
}

// advance notes the progress of the work on the present manifests.
func (p *pass[T]) advance(s *situation, r engine.Result) {
	status := p.obj.GetStatus()
	before := progress{Since: s.Since}
	before.Digest, before.Generation = parseProcessing(status.ProcessingDigest)
	if w := status.Wave; w != nil && w.Since.Sub(p.now) <= time.Second {
		before.Wave, before.WaveSince = &w.Order, w.Since.Time
	}
	wave := r.Wave
	if s.WaveTimeout == 0 {
		wave = nil
	}
	ready := r.Ready && r.Err == nil
	after, applied := advance(before, r.Digest, p.obj.GetGeneration(), wave, ready, p.now)
	applied = applied || ready && (status.ProcessingSince != nil || status.LastAppliedAt == nil) // and that was not written
	s.Since, s.Wave, s.WaveSince = after.Since, after.Wave, after.WaveSince
	if status.Wave = nil; after.Wave != nil {
		s.WaveSince = roundUp(after.WaveSince)
		status.Wave = &api.ComponentWave{Order: *after.Wave, Since: metav1.NewTime(s.WaveSince)}
	}
	p.timers.note(p.obj, after.Since)
	if after.Digest != "" {
		status.ProcessingDigest = fmt.Sprintf("%s@%d", after.Digest, after.Generation)
	}
	if status.ProcessingSince = nil; !after.Since.IsZero() {
		status.ProcessingSince = new(metav1.NewTime(after.Since.Truncate(time.Second)))
	}
	if applied {
		status.LastAppliedAt = new(metav1.NewTime(p.now.Truncate(time.Second)))
	}
}

// roundUp returns the next whole second, which is what a status can hold.
func roundUp(t time.Time) time.Time {
	return t.Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

func parseProcessing(text string) (digest string, generation int64) {
	if n, err := fmt.Sscanf(strings.ReplaceAll(text, "@", " "), "%s %d", &digest, &generation); err != nil || n != 2 {
		return "", 0
	}
	return digest, generation
}

// Cleanup implements [loop.Cleaner].
func (w *worker[T]) Cleanup(ctx context.Context, run *loop.Run[T]) loop.CleanupOutcome {
	p := w.open(run)
	s, err := p.cleanup(ctx)
	err = p.save(ctx, p.refused(&s, err))
	p.failed(&s, err)
	c := p.report(concludeDeletion(s))
	if c.Next == nextRelease {
		w.forget(run.Obj.GetUID())
	}
	return c.cleanupOutcome(err)
}

// cleanup does the work of a pass over a component that is being deleted. It needs no rendering.
func (p *pass[T]) cleanup(ctx context.Context) (situation, error) {
	s := situation{Now: p.now}
	if err := p.load(ctx); err != nil {
		return s, err
	}
	if err := p.call(ctx, postRead); err != nil {
		return s, err
	}
	config, _ := p.options.configurationOf(p.obj) // what is wrong does not matter any more
	p.configure(&s, config)
	if others := p.foreignFinalizers(); len(others) > 0 && !p.run.Vanished() {
		s.Blocked = "nothing is deleted before these finalizers are gone: " + strings.Join(others, ", ")
		return s, nil
	}
	if s.Ready = p.done(); s.Ready {
		return s, p.leave(ctx)
	}
	blocked, err := p.rejoin(ctx)
	if s.Blocked = blocked; err != nil || blocked != "" {
		return s, p.lost(err)
	}
	if err := p.call(ctx, preDelete); err != nil {
		return s, err
	}
	c, err := p.component(ctx)
	if err != nil {
		return s, err
	}
	result := p.engine.Delete(ctx, c)
	p.lostInventory = result.Lost
	if result.HooksSkipped != "" {
		p.warn("DeleteHooksSkipped", []string{result.HooksSkipped})
	}
	s.Blocked, s.Reason, s.Ready, s.Waiting, s.Again = result.Blocked, result.Reason, result.Ready, result.Waiting, result.Again
	s.Skipped, s.Late = result.Skipped, result.Late
	if result.Err != nil || !result.Ready {
		return s, p.lost(result.Err)
	}
	return s, p.finish(ctx, &s)
}

// foreignFinalizers are the finalizers of others.
func (p *pass[T]) foreignFinalizers() []string {
	own := p.options.finalizer()
	return slices.DeleteFunc(slices.Clone(p.obj.GetFinalizers()), func(f string) bool { return f == own })
}

// failed notes a failure.
func (p *pass[T]) failed(s *situation, err error) {
	if err == nil {
		return
	}
	s.Failure = strings.ReplaceAll(err.Error(), "\n", "; ")
	s.Stalled = err == p.invalid //nolint:errorlint // nothing else went wrong
	if e, ok := retriable(err); ok {
		s.Retriable, s.RetryAfter = true, s.Retry
		if after := e.RetryAfter(); after != nil {
			s.RetryAfter = *after
		}
	}
}

// mode is the one that the component's annotation asks for.
func (p *pass[T]) mode() (api.Mode, error) {
	key := p.engine.Name + "/mode"
	switch mode := api.Mode(p.obj.GetAnnotations()[key]); mode {
	case "", api.ModeFull, api.ModeDetectOnly, api.ModeSuspended:
		return mode, nil
	default:
		return "", fmt.Errorf("annotation %s is %q; it must be %q, %q or %q", key, mode, api.ModeFull, api.ModeDetectOnly, api.ModeSuspended)
	}
}

// component shows the object to the engine.
func (p *pass[T]) component(ctx context.Context) (engine.Component, error) {
	cluster, err := p.cluster.Get(ctx, p.run.Live())
	if err != nil {
		return engine.Component{}, err
	}
	mode, err := p.mode()
	if err != nil && p.obj.GetDeletionTimestamp() == nil {
		return engine.Component{}, err
	}
	p.clusterID = cluster
	key := client.ObjectKeyFromObject(p.obj)
	c := engine.Component{
		NamespacedName: key, UID: p.obj.GetUID(), Generation: p.obj.GetGeneration(), Owner: cluster + "/" + key.String(),
		In: p.config.Namespace, As: p.config.Name, WithoutHooks: p.withoutHooks(), Target: p.place.target, Mode: mode, Status: p.obj.GetStatus(), Policies: p.config.Policies, Namespaces: p.config.MissingNamespaces,
		Annotations: p.obj.GetAnnotations(), Claims: p.claims, Lost: p.lostInventory,
		Render: p.render, Run: p.run, Durable: p.durable,
		Certain: p.run.Certain,
		Warn:    func(texts []string) { p.warn("Deprecated", texts) }, Did: p.did,
	}
	if p.refs != nil {
		c.Inputs, err = p.inputs()
		return c, err
	}
	return c, nil
}

// render calls the renderer with a copy of the component whose references are loaded.
func (p *pass[T]) render(ctx context.Context, looks engine.Looks) (engine.Rendered, error) {
	if p.refs == nil { // of a component that is deleted
		refs, err := p.references.resolve(ctx, p.obj, p.run.Live())
		if err != nil {
			return engine.Rendered{}, err
		}
		if len(refs.missing) > 0 {
			return engine.Rendered{}, fmt.Errorf("references to %s: missing", strings.Join(refs.missing, ", "))
		}
		p.refs = refs
		p.context.revision = max(p.obj.GetStatus().Revision, 1)
		if p.context.digest, err = p.revisionDigest(); err != nil {
			return engine.Rendered{}, err
		}
	}
	copied, _ := p.obj.DeepCopyObject().(T)
	if err := p.refs.loadAll(ctx, copied); err != nil {
		return engine.Rendered{}, err
	}
	in, renderer := p.context.with(copied), p.renderer
	in.looks, in.scheme = looks, p.engine.Scheme
	var set Set
	var unrendered []string
	observed, namespace := p.observed(), p.config.Namespace
	if err := p.ask(ctx, "renderer", func() (err error) {
		if set, err = renderer.Render(in.into(ctx), RenderRequest[T]{Component: copied, NamespacedName: in.placement}); err == nil {
			unrendered, err = set.resolve(p.engine.Scheme, namespace, observed)
		}
		return err
	}); err != nil { // if the call was abandoned, it may still write to set
		return engine.Rendered{}, err
	}
	objects, err := set.Annotated(p.engine.Name, p.engine.Scheme)
	return engine.Rendered{Objects: objects, Volatile: in.asked.Load(), Unrendered: unrendered}, err
}

// forget drops what is known of a component that is gone.
func (w *worker[T]) forget(uid types.UID) {
	w.engine.Forget(uid)
	w.references.remember(uid, nil)
	w.timers.forget(uid)
	w.inventories.Forget(uid)
	w.targets.Leave(uid)
	w.placements.forget(uid)
	w.holds.forget(uid)
}
