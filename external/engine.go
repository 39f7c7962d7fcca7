package external

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/internal/decide"
	"github.com/trimtab-dev/trimtab/external/internal/record"
	"github.com/trimtab-dev/trimtab/internal/capability"
	"github.com/trimtab-dev/trimtab/internal/plain"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// New makes the controller of one kind of external thing. What d can do beyond [Driver] is
// found out here, by its methods; one with another signature than its interface has makes
// SetupWithManager fail. It panics if d is missing, or both [Options.Connect] and
// [Options.Connector] are.
func New[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) *loop.Controller[T] {
	e := newEngine(d, o)
	options := o.Loop
	if options.MaxInterval == 0 && e.driftInterval() > 0 {
		options.MaxInterval = e.driftInterval()
	}
	options.Sources = slices.Clone(options.Sources)
	for _, kind := range e.dependencies {
		options.Sources = append(options.Sources, e.source(kind))
	}
	waker := &trigger.Waker{OnAttach: e.clients.endWith}
	e.clients.wake = waker.Later
	e.left.returned = func(key objectKey) { waker.Objects(key) }
	options.Sources = append(options.Sources, trigger.External[T]{Waker: waker})
	options.Needs = append(slices.Clone(options.Needs), clusterNeed(), recordNeed())
	options.Problem = errors.Join(options.Problem, e.problem, capability.Check(d,
		reflect.TypeFor[Updater[T, C, O]](), reflect.TypeFor[Marker[T, C]](), reflect.TypeFor[Unmarker[T, C]](),
		reflect.TypeFor[Namer[T]](), reflect.TypeFor[Reflector[T, O]](), reflect.TypeFor[Dependent[T]](), reflect.TypeFor[Classifier]()))
	return loop.New(e, options)
}

// engine is the [loop.Reconciler] of one kind: it gathers facts, asks [decide.Next], acts, and
// shows what came of it.
type engine[T Object, C, O any] struct {
	driver  Driver[T, C, O]
	options Options[T, C]
	// self tells the markers of this process from those of others.
	self    string
	kind    string
	clients clients[T, C]
	tracks  tracks
	memory  memory[O]
	cluster cluster
	left    leftBehind
	beliefs beliefs
	calls   *prometheus.CounterVec

	// What the driver can do; nil if it cannot.
	updater    Updater[T, C, O]
	marker     Marker[T, C]
	unmarker   Unmarker[T, C]
	namer      Namer[T]
	reflector  Reflector[T, O]
	dependent  Dependent[T]
	classifier Classifier

	dependencies []dependencyKind[T]
	// problem is what makes the driver unusable.
	problem error
}

func newEngine[T Object, C, O any](d Driver[T, C, O], o Options[T, C]) *engine[T, C, O] {
	if d == nil {
		panic("external: New needs a Driver; pass the value that implements Observe, Compare, Create and Delete")
	}
	o.checkConnect()
	if err := o.Limits.check(); err != nil {
		panic("external: Options.Limits: " + err.Error())
	}
	e := &engine[T, C, O]{
		driver: d, options: o, self: rand.Text()[:8],
		kind: reflect.TypeFor[T]().Elem().Name(), calls: newCallsTotal(),
	}
	left := newLeftBehind().WithLabelValues(e.kind)
	e.left.changed = func(by int) { left.Add(float64(by)) }
	if e.clients.connector = o.Connector; o.Connector == nil {
		e.clients.connect = attach(o.Connect, o.Endpoint)
	}
	e.updater, _ = any(d).(Updater[T, C, O])
	e.marker, _ = any(d).(Marker[T, C])
	if o.MarkLater && (e.marker == nil || o.Unmarked) {
		panic("external: Options.MarkLater needs a Driver that is a Marker, and no Options.Unmarked; " +
			"give it Mark(context.Context, MarkRequest[T, C]) (MarkResponse, error) with the T and C of its other methods")
	}
	e.unmarker, _ = any(d).(Unmarker[T, C])
	e.namer, _ = any(d).(Namer[T])
	e.reflector, _ = any(d).(Reflector[T, O])
	e.dependent, _ = any(d).(Dependent[T])
	e.classifier, _ = any(d).(Classifier)
	e.dependencies = e.dependencyKinds()
	return e
}

// dependencyKinds are the kinds that objects may wait for, each once.
func (e *engine[T, C, O]) dependencyKinds() []dependencyKind[T] {
	if e.dependent == nil {
		return nil
	}
	kinds, err := e.namedByEmpty()
	if err != nil && len(e.options.DependencyKinds) == 0 {
		e.problem = fmt.Errorf("tell which kinds a %T depends on: %w; let DependsOn answer for an empty object, or name them in Options.DependencyKinds", e.driver, err)
	}
	for _, to := range e.options.DependencyKinds {
		kinds = append(kinds, dependencyKind[T]{to: to, asked: &asked{}})
	}
	return unique(kinds)
}

// Prepare puts the first marker on an object whose API can hold ownership marks, so that
// it is durable together with the finalizer. Without marks, what exists already must be
// looked for first. A record that arrived with the object stays if it may be its own of
// before a restore; one that was copied makes way.
func (e *engine[T, C, O]) Prepare(ctx context.Context, r *loop.Run[T]) error {
	here, err := e.here(ctx, r)
	if err != nil {
		return err
	}
	if e.looksFirst() {
		return nil
	}
	if e.options.Endpoint != nil || e.options.Connector != nil {
		here.Endpoint = e.endpointOf(ctx, r.Obj)
	}
	uid := string(r.Obj.GetUID())
	if there, err := record.Parse(r.Obj.GetAnnotations()[api.AnnotationExternal]); err != nil || there.Stays(uid, here) {
		return nil //nolint:nilerr // Reconcile shows it
	}
	if known := e.tracks.of(r.Obj.GetUID()).known; known.UID == uid { // it went with the finalizer
		_, value, err := record.Settle(known)
		annotate(r.Obj, value)
		r.Event("Warning", "RecordPutBack", e.putBack(known))
		return err
	}
	name, err := e.nameOf(ctx, r.Obj)
	if err != nil {
		return nil //nolint:nilerr // Reconcile shows it; nothing is created under no name
	}
	first, value, err := e.newRecord(r.Obj, here, name, 1)
	if err != nil {
		return err
	}
	annotate(r.Obj, value)
	e.tracks.of(r.Obj.GetUID()).prepared = first.Create
	return nil
}

// Reconcile brings the thing to what the object asks for.
func (e *engine[T, C, O]) Reconcile(ctx context.Context, r *loop.Run[T]) loop.Outcome {
	p := e.open(r)
	defer p.close()
	d, err := p.run(ctx)
	if err != nil {
		return loop.Fail(errors.Join(err, p.broken(ctx, err)))
	}
	if err := p.report(ctx, d); err != nil {
		return loop.Fail(err)
	}
	return p.outcome(d)
}

// Cleanup deletes the thing, or leaves it as the policy says, and lets the object go.
func (e *engine[T, C, O]) Cleanup(ctx context.Context, r *loop.Run[T]) loop.CleanupOutcome {
	p := e.open(r)
	defer p.close()
	d, err := p.run(ctx)
	if err != nil {
		return loop.CleanupFailed(errors.Join(err, p.broken(ctx, err)))
	}
	if d.Action == decide.ActionRemoveFinalizer {
		p.track.released = true
		e.memory.drop(r.Obj.GetUID())
		e.clients.forget(subjectOf(r.Obj).key)
		return loop.Removed()
	}
	if err := p.report(ctx, d); err != nil {
		return loop.CleanupFailed(err)
	}
	return p.cleanupOutcome(d)
}

// name is the thing's name for a new incarnation. lend returns the object for the author. An
// error that is [unasked] says nothing of the spec.
func (e *engine[T, C, O]) name(ctx context.Context, who subject, lend func() T) (string, error) {
	if e.namer == nil {
		return strings.ToLower(e.kind) + "-" + string(who.uid), nil
	}
	obj := lend()
	name, err := pure(ctx, &e.left, who, "ExternalName", func() (string, error) { return e.namer.ExternalName(obj) })
	if err == nil {
		err = e.fitName(name)
	}
	switch {
	case isUnreturned(err):
		return "", err
	case unasked(err):
		return "", fmt.Errorf("ask the driver for a name: %w", err)
	case err != nil:
		return "", errors.New(classify(err, nil, false).text)
	}
	return name, nil
}

// fitName tells what is wrong with a name that cannot be recorded.
func (e *engine[T, C, O]) fitName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the driver gives it no name; this is a bug in %T.ExternalName", e.driver)
	case !utf8.ValidString(name):
		return fmt.Errorf("the driver gives it the name %q, which is no text; this is a bug in %T.ExternalName", plain.Clip(name, 80), e.driver)
	case len(name) > record.LongestID:
		return fmt.Errorf("the driver gives it a name of %d bytes, which are more than the %d that can be recorded; %T.ExternalName must shorten it",
			len(name), record.LongestID, e.driver)
	}
	return nil
}

// nameOf is the name that obj gives its thing now.
func (e *engine[T, C, O]) nameOf(ctx context.Context, obj T) (string, error) {
	return e.name(ctx, subjectOf(obj), func() T { return copyOf(obj) })
}

func copyOf[T Object](obj T) T {
	c, _ := obj.DeepCopyObject().(T)
	return c
}

// newRecord makes the record of a create that may be called next.
func (e *engine[T, C, O]) newRecord(obj T, here record.Place, id string, incarnation int64) (record.Record, string, error) {
	return record.Settle(record.Record{
		ID: id, Incarnation: incarnation, UID: string(obj.GetUID()),
		Create: record.Marker{At: time.Now(), By: e.self}, Place: here,
	})
}

func annotate(obj client.Object, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationExternal] = value
	obj.SetAnnotations(annotations)
}

// driftInterval is the time between two looks at a thing in sync; 0 means none.
func (e *engine[T, C, O]) driftInterval() time.Duration {
	switch d := e.options.DriftInterval; {
	case d < 0:
		return 0
	case d == 0:
		return 10 * time.Minute
	default:
		return d
	}
}

func (e *engine[T, C, O]) callDeadline() time.Duration {
	if e.options.CallDeadline <= 0 {
		return 30 * time.Second
	}
	return e.options.CallDeadline
}

func (e *engine[T, C, O]) grace() time.Duration {
	switch g := e.options.CreateGrace; {
	case g < 0:
		return 0
	case g == 0:
		return 10 * time.Second
	default:
		return g
	}
}

// settled is the age from which on a record tells of no create that could still be under way
// or not show yet.
func (e *engine[T, C, O]) settled() time.Duration {
	return record.MarkerLife + e.callDeadline() + e.grace() + record.ClockSkew
}

// looksFirst: what bears the name before the first create is not ours, and no mark could tell
// later. So the first record is written after a look that showed nothing.
func (e *engine[T, C, O]) looksFirst() bool { return e.options.Unmarked || e.options.MarkLater }

// source wakes objects when something of the kind changes in a way that matters to them.
func (e *engine[T, C, O]) source(k dependencyKind[T]) trigger.Source[T] {
	return trigger.Reference[T]{To: k.to, Names: func(obj T) []objectKey { return e.names(k, obj) }, Changed: k.changed}
}
