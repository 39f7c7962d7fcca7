package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/desired"
	"github.com/trimtab-dev/trimtab/component/internal/projection"
	"github.com/trimtab-dev/trimtab/component/internal/prune"
	"github.com/trimtab-dev/trimtab/component/internal/rules"
	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/graph"
	"github.com/trimtab-dev/trimtab/internal/apply"
	"github.com/trimtab-dev/trimtab/node"
)

// Engine works on the components of one operator.
type Engine struct {
	// Name is the operator's; it is the prefix of its annotations and its field manager.
	Name     string
	Policies api.Policies // complete
	// Namespaces says what happens if a namespace is missing. Empty means that it is created.
	Namespaces api.NamespacePolicy
	// ManagedTypes are types that components add to the API in other ways than by a definition among
	// their dependents.
	ManagedTypes []api.TypeInfo
	Scheme       *runtime.Scheme
	// Kinds are the only ones that may be applied, and Within the only namespaces beside the one where a
	// component's dependents go. None means any.
	Kinds  []schema.GroupVersionKind
	Within []string
	// Pause is how long an object is left as it is that another keeps changing. Zero means a minute.
	Pause time.Duration
	// Recheck is when a blocked deletion is tried again although no event came, and how long a definition stays
	// released that is not deleted. Zero means a minute.
	Recheck time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Protect has the API server refuse to delete CustomResourceDefinitions among the dependents that were not
	// released.
	Protect bool
	// Rules judge the health of dependents.
	Rules *rules.Rules

	// PruneLimit is the share of its dependents that a component can lose at a time. Zero means a
	// half, 1 or more that there is no limit.
	PruneLimit float64
	// Wake has a pass over a component made soon. Watcher calls it when what blocked a deletion is
	// gone. Nil means that nobody is woken.
	Wake    func(types.NamespacedName)
	Watcher prune.Watcher

	// Drivers manage the dependents of their kinds, which are no Kubernetes objects.
	Drivers map[schema.GroupKind]node.Driver
	// Grace is how long an object is kept that is no longer rendered, so that another component can take
	// it over. Zero means five seconds; a negative value means that it is not kept.
	Grace time.Duration

	memory     memory
	polls      polls
	fights     fights
	rejections notes[rejection]
	graces     graces
	// released is since when definitions are released that their components are to have.
	released notes[time.Time]
	rendered renderings
}

// Component is one component in one pass.
type Component struct {
	types.NamespacedName
	UID        types.UID
	Generation int64
	// Owner identifies the component in the world: cluster/namespace/name.
	Owner string
	// Annotations are the component's own.
	Annotations map[string]string
	// Namespace and Name of NamespacedName are the component's own; In is where dependents go that
	// name no namespace.
	In string
	// Target is where the dependents are.
	Target *target.Target
	// Status has the inventory. The pass changes it.
	Status *api.ComponentStatus
	// Lost: the component is deleted, and a part of its inventory, or all, cannot be read.
	Lost bool
	// Policies are the component's, complete, and Namespaces says what happens if a namespace is
	// missing. Without an update policy both are the operator's.
	Policies   api.Policies
	Namespaces api.NamespacePolicy
	// Inputs identifies all that the result of Render depends on. As long as it is the same, Render is
	// called only for a manifest that has to be applied. Empty means that it is not known.
	Inputs string
	// Claims returns which other components have recorded objects, by key: what the API server has, and
	// not what a cache has. Nil means that there are none.
	Claims func(ctx context.Context, keys []string) (map[string]Claim, error)
	// Mode limits what is done to all dependents. Empty means no limit.
	Mode api.Mode
	// Run is the pass, and Durable returns the record of a node as the API server has it. Only drivers
	// need them.
	Run     node.Run
	Durable func(ctx context.Context, key string) ([]byte, error)
	// Certain makes sure that the component is no old copy, before dependents are changed. Nil means that it is none.
	Certain func(context.Context) error
	// As is the name after which the dependents are named.
	As string
	// WithoutHooks: the component is deleted without its delete hooks.
	WithoutHooks bool
	// Render returns the dependents. It is not called for a component that is deleted.
	Render func(ctx context.Context, looks Looks) (Rendered, error)
	// Did is called with what was done to dependents, from several goroutines. Nil means that nobody wants to
	// know.
	Did func(Deed)
	// Warn is called with what is deprecated in what was rendered, one sentence each. Nil means that
	// nobody wants to know.
	Warn func(texts []string)
}

// Rendered is what a component renders.
type Rendered struct {
	Objects []client.Object
	// Volatile: the objects depend on more than Inputs.
	Volatile bool
	// Unrendered are the keys of nodes from which objects are made as soon as they are ready.
	Unrendered []string
}

// Result is how a pass over a component ended.
type Result struct {
	// Recorded: dependents were added to the inventory, and nothing was done: the inventory has to be
	// written first.
	Recorded bool
	// Ready: all dependents are as rendered and ready; or, of a deletion, none is left.
	Ready bool
	// settled: all wanted dependents are ready. terminating: something could not be created because its namespace is
	// being deleted.
	settled, terminating bool
	// HooksSkipped says why delete hooks did not run. Empty means that none was skipped in this pass.
	HooksSkipped string
	// Waiting says what is not ready, and why, in one sentence.
	Waiting string
	// Failed names the dependents that will not become ready by themselves, and why, in one sentence.
	// It is empty if there are none.
	Failed string
	// Late says which dependents have not become ready in the time that they had, in one sentence.
	Late string
	// Wave is the first wave that is not ready. Nil means that all are.
	Wave *int16
	// Reason is the reason of Waiting if it is not that objects take their time: one of those below.
	Reason string
	// Err is all that went wrong, and Skipped what is not done because of that: it continues the sentence.
	Err     error
	Skipped string
	// Stalled: all that went wrong is manifests that the API server calls invalid. They are not sent again before
	// something changes, or Again.
	Stalled bool
	// Lost: the rest of an inventory that cannot be read was not found. What can be read is not the inventory.
	Lost bool
	// PruneBlocked says that too many dependents left the manifests, and that they are kept.
	PruneBlocked string
	// Drifted and Contended say which dependents differ from what was applied, and are left so because
	// of their mode, and which are changed again and again.
	Drifted, Contended string
	// Again is when to look again without an event; zero means never.
	Again time.Duration
	// Blocked says what a deletion has to wait for before anything is deleted.
	Blocked string
	// Digest identifies all manifests. It is empty if they are not known.
	Digest string
	// Unrendered are those of Rendered.
	Unrendered []string
}

// Reasons why nothing goes on by itself.
const (
	// DeletionBlocked: objects of others would be deleted, too.
	DeletionBlocked = "DeletionBlocked"
	// PruneBlocked: too many dependents would be deleted.
	PruneBlocked = "PruneBlocked"
)

// pass is one pass over one component.
type pass struct {
	// found are the dependents of a component whose inventory is lost.
	found []api.InventoryItem
	*Engine
	Target   *target.Target
	c        Component
	deleting bool
	members  map[graph.Key]*member
	// manifests returns the rendered manifests of a pass that did not need them so far.
	manifests func(context.Context) (map[graph.Key]desired.Object, error)
	// sources are what the renderer returned; nil if it was not called. unrendered are those of Rendered.
	sources    []client.Object
	unrendered []string
	// claims returns which of the members that are to go other components have recorded. It asks once.
	claims func(context.Context) (map[string]Claim, error)
	// undiscovered is why the target could not say whether it serves a kind.
	undiscovered error
	// unsettled is when to look again at what the API server serves; zero means when that changes.
	unsettled time.Duration

	mu sync.Mutex
	// held is why nothing more is deleted in this pass.
	held string
	// kept is why dependents that left the manifests are not deleted.
	kept string
}

// member is a dependent in a pass.
type member struct {
	// item is what is recorded of it. Of a wanted dependent it has what will be recorded, but for
	// what is recorded only after it was applied.
	item   api.InventoryItem
	wanted *desired.Object // nil if it is to go
	// recorded: the item is in the inventory as it was read, and says there how it goes.
	recorded bool
	// completed: the inventory as it was read says that the object has done its work.
	completed bool
	stage     int
	// unobserved is why nothing is known of the object, and failed what is to be reported of that.
	unobserved, failed error
	// unshielded is why a definition is not protected.
	unshielded error
	// forgotten: it is gone, or no longer the component's, and leaves the inventory.
	forgotten bool
	// refused says why nothing may be done to the object, and again when to look again although no
	// event comes.
	refused string
	again   time.Duration
	// drift says how a member drifted that is left so, and contended who keeps changing it.
	drift, contended string
	// did is what the last action did, one of the constants of [Deed].
	did string
	// altered: somebody changed a value, which only a read could tell. unlabelled: it is not known because
	// somebody took its label away.
	altered, unlabelled bool
	// held is why it is not deleted, and foreign reports that the object is another than the one
	// that is recorded.
	held    string
	foreign bool
	// kept: it is held because too many left the manifests.
	kept bool
	// holder is what keeps the object although it is being deleted.
	holder string
	// autoscaled: its replicas are left to an autoscaler that is none of the dependents.
	autoscaled bool
	// recreate: the object must be created again to get its manifest.
	recreate bool

	// node: the member is no Kubernetes object; driver is its driver, nil if there is none.
	node   bool
	driver node.Driver
	// gone: the driver says that it is. unwritten: the driver goes on when its record is durable.
	gone, unwritten bool
}

// Apply brings the dependents to what the component renders.
func (e *Engine) Apply(ctx context.Context, c Component) Result {
	p := e.pass(c, false)
	c.Status.DeletionStage = "" // of a status that was restored
	objects, err := p.wanted(ctx)
	if err != nil {
		return Result{Err: err}
	}
	if err := errors.Join(p.allowed(objects), p.rebuild(ctx, objects, false)); err != nil {
		return Result{Err: err}
	}
	if err := desired.CheckRemovals(c.Status.Inventory, objects); err != nil {
		return Result{Err: err}
	}
	digest := digestOf(objects)
	p.merge(objects)
	p.shrinks() // before what is added is recorded, and then looks as if it had been there
	if err := p.prepare(ctx); err != nil {
		return Result{Err: err}
	}
	if p.unrecorded() {
		p.record()
		return Result{Recorded: true, Digest: digest, Unrendered: p.unrendered}
	}
	p.pending()
	result := p.run(ctx)
	result.Digest, result.Unrendered = digest, p.unrendered
	if p.unsettled > 0 {
		result.again(p.unsettled)
	}
	return result
}

// pass begins a pass over a component.
func (e *Engine) pass(c Component, deleting bool) *pass {
	if c.Policies.UpdatePolicy == "" {
		c.Policies, c.Namespaces = e.Policies, e.Namespaces
	}
	return &pass{Engine: e, Target: c.Target, c: c, deleting: deleting}
}

// Delete deletes the dependents.
func (e *Engine) Delete(ctx context.Context, c Component) Result {
	p := e.pass(c, true)
	if err := p.rediscover(ctx); err != nil {
		return Result{Err: err, Lost: c.Lost}
	}
	h := p.deleteHooks(ctx)
	if h.blocked != "" || h.err != nil {
		return Result{Err: h.err, Blocked: h.blocked, Again: p.recheck(), Lost: c.Lost}
	}
	p.merge(h.objects)
	h.hold()
	if c.Lost {
		p.record()
	}
	if err := p.prepare(ctx); err != nil {
		return Result{Err: err}
	}
	if len(h.objects) > 0 && p.unrecorded() {
		p.record()
		return Result{Recorded: true, Again: soon, Waiting: "the " + h.title() + " are recorded"}
	}
	result := h.conclude(p.run(ctx))
	if result.Ready { // so that nobody takes the inventory, which is empty, for one that was lost
		c.Status.ProcessingDigest, c.Status.ProcessingSince = digestOf(nil), nil
	}
	return result
}

// scope reports whether objects of a kind have a namespace, if the target serves it.
func (p *pass) scope(kind schema.GroupKind, version string) (namespaced, known bool) {
	if p.Drivers[kind] != nil {
		return true, true
	}
	mapping, err := p.Target.Mapper.RESTMapping(kind, version)
	if err != nil {
		if !meta.IsNoMatchError(err) {
			p.undiscovered = err
		}
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// merge makes the members of the pass from what is recorded and what is wanted.
func (p *pass) merge(objects []desired.Object) {
	p.members = make(map[graph.Key]*member, len(objects))
	for _, item := range p.memory.recall(p.c.UID, p.c.Status.Inventory) {
		completed := item.Phase == api.PhaseCompleting || item.Phase == api.PhaseCompleted
		p.members[graph.Key(item.Key())] = &member{item: item, recorded: true, completed: completed}
	}
	for _, item := range p.found { // what is to be deleted needs no record of its own
		if key := graph.Key(item.Key()); p.members[key] == nil {
			p.members[key] = &member{item: item, recorded: p.deleting}
		}
	}
	for i := range objects {
		o := &objects[i]
		key := graph.Key(o.Item.Key())
		m := p.members[key]
		if m == nil {
			m = &member{}
			p.members[key] = m
		}
		before := m.item
		m.item, m.wanted = o.Item, o
		m.recorded = m.recorded && leavesAlike(before, o.Item)
		m.item.UID, m.item.Digest, m.item.Fingerprint = before.UID, before.Digest, before.Fingerprint
		m.item.Record = before.Record
		m.item.Phase, m.item.Status = before.Phase, before.Status
		m.item.Since = before.Since
		if m.item.Phase == "" || m.item.Phase == api.PhaseScheduledForDeletion {
			m.item.Phase = api.PhaseScheduledForApplication
		}
	}
}

func (p *pass) unrecorded() bool {
	for _, m := range p.members {
		if !m.recorded {
			return true
		}
	}
	return false
}

// run does what can be done now.
func (p *pass) run(ctx context.Context) Result {
	p.arrange()
	p.watch(ctx)
	p.autoscaled(ctx)
	p.inspect(ctx)
	p.handOver(ctx)
	if p.deleting {
		if why, err := p.permit(ctx); err != nil || why != "" {
			return Result{Err: err, Blocked: why, Again: p.recheck()}
		}
	}
	p.verify(ctx)
	p.compare(ctx)
	p.shield(ctx)
	nodes := make([]graph.Node, 0, len(p.members))
	for key, m := range p.members {
		nodes = append(nodes, p.node(key, m))
	}
	if err := graph.Check(nodes); err != nil {
		return Result{Err: err}
	}
	if err := p.certain(ctx, nodes); err != nil {
		return Result{Err: err}
	}
	result := graph.Run(ctx, nodes, p.do, graph.Options{})
	p.nudge()
	p.holders(ctx, result.Plan)
	p.phases(result)
	p.record()
	p.unwatch()
	out := p.conclude(result)
	if left := len(result.Plan.Steps); left > 0 && ctx.Err() != nil && out.Err == nil {
		// Nothing failed, and no event follows from what was not begun.
		out.Err = fmt.Errorf("the pass ran out of time with %d of %d dependents left to apply or delete: %w", left, len(p.members), context.Cause(ctx))
	}
	return out
}

// certain makes sure that nothing is done for an old copy of the component, which may be gone by now: what it had would
// be created again and belong to nobody. External resources are safe by themselves: their driver confirms first.
func (p *pass) certain(ctx context.Context, nodes []graph.Node) error {
	if p.c.Certain == nil {
		return nil
	}
	changes := func(s graph.Step) bool { return s.Action != graph.Forget && !p.members[s.Key].node }
	if !slices.ContainsFunc(graph.Decide(nodes).Steps, changes) {
		return nil
	}
	return p.c.Certain(ctx)
}

// ref is the object of an item.
func ref(item api.InventoryItem) apply.Ref {
	return apply.Ref{
		GroupVersionKind: schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind},
		NamespacedName:   types.NamespacedName{Namespace: item.Namespace, Name: item.Name},
	}
}

func liveKey(item api.InventoryItem) projection.Key {
	r := ref(item)
	return projection.Key{GroupKind: r.GroupKind(), NamespacedName: r.NamespacedName}
}

// note takes over the answer to a write.
func (p *pass) note(m *member, live *unstructured.Unstructured) {
	o := p.Target.Cache.Note(live)
	m.item.UID, m.item.Fingerprint = string(o.UID), baselineOf(m, live, o)
	m.recreate, m.altered = false, false
	if m.wanted != nil {
		if m.item.Digest != m.wanted.Item.Digest {
			m.item.Since = nil
		}
		m.item.Digest = m.wanted.Item.Digest
	}
}
