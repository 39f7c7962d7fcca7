package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/clusterid"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Engine manages the external resources of one kind: it gathers facts, asks [decide.Next], acts,
// and reports the outcome.
type Engine struct {
	driver  Driver
	options Options
	// self distinguishes this process's markers from those of others.
	self      string
	kind      string
	noun      string // the kind in lower case
	clients   clients
	tracks    tracks
	memory    memory
	cluster   clusterid.Reader
	abandoned abandonedCalls
	verified  verifiedVersions
	calls     *prometheus.CounterVec
	waker     *trigger.Waker
	records   *lru.Cache // by the annotation, for the index

	dependencies []dependencyKind
	// unlocked: what Prepare and Persist ask for is written without a check that nothing has changed
	// meanwhile, and that is checked before the external API is asked to change anything.
	unlocked bool
	// problem is why the driver cannot be used; nil if it can.
	problem error
}

// New returns the engine of a driver.
func New(d Driver, o Options) *Engine {
	e := &Engine{driver: d, options: o, self: rand.Text()[:8], kind: d.Kind, noun: strings.ToLower(d.Kind), calls: newCallsTotal(), records: lru.New(indexedRecords)}
	left := newLeftBehind().WithLabelValues(e.kind)
	e.abandoned.changed = func(by int) { left.Add(float64(by)) }
	if e.clients.connector = o.Connector; o.Connector == nil {
		e.clients.connect = attach(o.Connect, o.Endpoint, Errors{Declared: d.Errors.Declared})
	}
	e.dependencies = e.dependencyKinds()
	e.waker = &trigger.Waker{OnAttach: e.clients.endWith}
	e.clients.wake = e.waker.Later
	e.abandoned.returned = func(key objectKey) { e.waker.Objects(key) }
	return e
}

// Waker wakes the objects that an answer of the external API concerns.
func (e *Engine) Waker() *trigger.Waker { return e.waker }

// Dependencies returns the kinds whose objects wake those that need them.
func (e *Engine) Dependencies() []DependencyKind {
	out := make([]DependencyKind, len(e.dependencies))
	for i, k := range e.dependencies {
		out[i] = DependencyKind{To: k.to, Names: func(obj Object) []objectKey { return e.names(k, obj) }, Changed: k.changed}
	}
	return out
}

// Needs returns the permissions that managing external resources requires.
func (e *Engine) Needs() []loop.Need { return []loop.Need{clusterNeed(), recordNeed()} }

// Problem returns why the driver cannot be used; nil if it can.
func (e *Engine) Problem() error { return e.problem }

// dependencyKinds returns the kinds that objects may wait for, each once.
func (e *Engine) dependencyKinds() []dependencyKind {
	if e.driver.DependsOn == nil {
		return nil
	}
	kinds, err := e.namedByEmpty()
	if err != nil && len(e.options.DependencyKinds) == 0 {
		e.problem = fmt.Errorf("tell which kinds a %s depends on: %w; let DependsOn answer for an empty object, or name them in Options.DependencyKinds", e.driver.Type, err)
	}
	for _, to := range e.options.DependencyKinds {
		kinds = append(kinds, dependencyKind{to: to, facts: &kindFacts{}})
	}
	return unique(kinds)
}

// Prepare puts the first marker on an object whose API can hold ownership marks, so that the
// marker becomes durable together with the finalizer. Without marks, an existing resource must be
// observed first. A record that arrived with the object stays if it may be the object's own from
// before a restore; a copied one is replaced.
func (e *Engine) Prepare(ctx context.Context, r Run) error {
	here, err := e.place(ctx, r)
	if err != nil {
		return err
	}
	if e.observesFirst() {
		return nil
	}
	if e.options.Endpoint != nil || e.options.Connector != nil {
		here.Endpoint = e.endpointOf(ctx, r)
	}
	uid := string(r.Object().GetUID())
	if there, err := record.Parse(r.Object().GetAnnotations()[api.AnnotationExternal]); err != nil || there.Stays(uid, here) {
		return nil //nolint:nilerr // Reconcile reports it
	}
	if known := e.tracks.of(r.Object().GetUID()).known; known.UID == uid { // it was removed with the finalizer
		_, value, err := record.Settle(known)
		annotate(r.Object(), api.AnnotationExternal, value)
		r.Event("Warning", "RecordPutBack", e.putBack(known))
		return err
	}
	name, err := e.nameOf(r.Object())
	if err != nil {
		return nil //nolint:nilerr // Reconcile reports it; nothing is created without a name
	}
	first, value, err := e.newRecord(r.Object(), here, name, 1)
	if err != nil {
		return err
	}
	annotate(r.Object(), api.AnnotationExternal, value)
	e.tracks.of(r.Object().GetUID()).prepare(first.Create, e.unlocked)
	return nil
}

// Selects reports whether this installation of the operator is responsible for the object; false
// if another one is.
func (e *Engine) Selects(ctx context.Context, r Run) bool {
	ours, value := r.Terms().Installation, r.Object().GetAnnotations()[api.AnnotationExternal]
	if ours == "" || !strings.Contains(value, `"installation":`) || strings.Contains(value, fmt.Sprintf(`"installation":%q`, ours)) {
		return true
	}
	there, err := record.Parse(value)
	if err != nil || there.Installation == "" || there.Installation == ours {
		return true
	}
	if there.UID != string(r.Object().GetUID()) {
		here, err := e.place(ctx, r)
		if err != nil || there.Cluster != here.Cluster || there.Object != here.Object {
			return true // a copy from another place
		}
	}
	t := e.tracks.of(r.Object().GetUID())
	if !t.warned {
		t.warned = true
		r.Log().Info("left alone: another installation of the operator works on the object", "installation", there.Installation, "ours", ours)
	}
	return false
}

// Reconcile makes the resource match the object's spec.
func (e *Engine) Reconcile(ctx context.Context, r Run) loop.Outcome {
	p := e.open(r)
	defer p.close()
	d, err := p.converge(ctx)
	if errors.Is(err, errRecordFirst) || errors.Is(err, errHeld) {
		return loop.Again()
	}
	if err != nil {
		return loop.Fail(errors.Join(err, p.broken(ctx, err)))
	}
	if err := p.report(ctx, d); err != nil {
		return loop.Fail(err)
	}
	return p.outcome(d)
}

// Cleanup deletes the resource, or leaves it as the policy says, and removes the finalizer.
func (e *Engine) Cleanup(ctx context.Context, r Run) loop.CleanupOutcome {
	p := e.open(r)
	defer p.close()
	d, err := p.converge(ctx)
	if errors.Is(err, errRecordFirst) || errors.Is(err, errHeld) {
		return loop.Keep(0)
	}
	if err != nil {
		return loop.CleanupFailed(errors.Join(err, p.broken(ctx, err)))
	}
	if d.Action == decide.ActionRemoveFinalizer {
		p.track.released = true
		e.memory.drop(r.Object().GetUID())
		e.clients.forget(subjectOf(r.Object()).key)
		return loop.CleanedUp()
	}
	if err := p.report(ctx, d); err != nil {
		return loop.CleanupFailed(err)
	}
	return p.cleanupOutcome(d)
}

// name returns the resource's name for a new incarnation. lend returns the object for the driver.
// An error for which [unasked] is true says nothing about the spec.
func (e *Engine) name(who subject, lend func() Object) (string, error) {
	if e.driver.ExternalName == nil {
		return e.noun + "-" + string(who.uid), nil
	}
	obj := lend()
	name, err := pure(&e.abandoned, who, "ExternalName", func() (string, error) {
		name, err := e.driver.ExternalName(obj)
		if err != nil {
			err = errors.New(classify(err, Errors{}, false).text) // the error's methods are the author's code, too
		}
		return name, err
	})
	if err == nil {
		err = e.fitName(name)
	}
	switch {
	case isUnreturned(err):
		return "", err
	case unasked(err):
		return "", fmt.Errorf("ask the driver for a name: %w", err)
	case err != nil:
		return "", errors.New(classify(err, Errors{}, false).text)
	}
	return name, nil
}

// fitName returns what is wrong with a name that cannot be recorded; nil if it can.
func (e *Engine) fitName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the driver gives it no name; this is a bug in %s.ExternalName", e.driver.Type)
	case !utf8.ValidString(name):
		return fmt.Errorf("the driver gives it the name %q, which is no text; this is a bug in %s.ExternalName", plain.Clip(name, 80), e.driver.Type)
	case len(name) > record.LongestID:
		return fmt.Errorf("the driver gives it a name of %d bytes, which are more than the %d that can be recorded; %T.ExternalName must shorten it",
			len(name), record.LongestID, e.driver)
	}
	return nil
}

// nameOf returns the name that obj gives its resource now.
func (e *Engine) nameOf(obj Object) (string, error) {
	return e.name(subjectOf(obj), func() Object { return copyOf(obj) })
}

func copyOf(obj Object) Object {
	c, _ := obj.DeepCopyObject().(Object)
	return c
}

// newRecord returns the record of a create that may be called next.
func (e *Engine) newRecord(obj Object, here record.Place, id string, incarnation int64) (record.Record, string, error) {
	return record.Settle(record.Record{
		ID: id, Incarnation: incarnation, UID: string(obj.GetUID()),
		Create: record.Marker{At: time.Now(), By: e.self}, Place: here,
	})
}

// annotate sets an annotation. Copies of the object that share the others keep theirs.
func annotate(obj client.Object, key, value string) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// DriftInterval returns the time between two observations of a resource in sync; 0 means none.
func (e *Engine) DriftInterval() time.Duration {
	switch d := e.options.DriftInterval; {
	case d < 0:
		return 0
	case d == 0:
		return 10 * time.Minute
	default:
		return d
	}
}

func (e *Engine) callDeadline() time.Duration {
	if e.options.CallDeadline <= 0 {
		return 30 * time.Second
	}
	return e.options.CallDeadline
}

func (e *Engine) grace() time.Duration {
	switch g := e.options.CreateGrace; {
	case g < 0:
		return 0
	case g == 0:
		return 10 * time.Second
	default:
		return g
	}
}

// settled returns the age from which on a record cannot belong to a create that is still in flight
// or not visible yet.
func (e *Engine) settled() time.Duration {
	return record.MarkerLife + e.callDeadline() + max(e.grace(), e.lostGrace()) + record.ClockSkew
}

// observesFirst reports whether the first record is written only after an observation that found
// nothing: a resource that has the name before the first create is not ours, and no mark would
// show that later.
//
// A resource whose id the API assigns cannot be observed before it is created.
func (e *Engine) observesFirst() bool {
	return (e.options.Unmarked || e.options.MarkLater) && !e.options.AssignedIDs
}
