package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/conditions"
	"github.com/trimtab-dev/trimtab/external/internal/applied"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
)

// errRecordFirst is the error of Persist if the pass has to end for the record to become durable.
var errRecordFirst = errors.New("the record is written first")

// kept is the record of a node: its object, as far as a pass needs it.
type kept struct {
	// Object has the manifest, the record of the external resource, and the status of the kind as it was
	// when the resource was last ready.
	Object json.RawMessage `json:"object"`
	// Ready: the resource was ready once.
	Ready bool `json:"ready,omitempty"`
}

// with returns the record with another object.
func (k kept) with(obj Object) ([]byte, error) {
	obj = copyOf(obj)
	obj.SetUID("")
	obj.SetDeletionTimestamp(nil)
	*obj.TrimtabStatus() = api.Status{}
	var err error
	if k.Object, err = json.Marshal(obj); err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	return json.Marshal(k)
}

// restore returns what a record says, and its object.
func (n *Nodes) restore(data []byte) (kept, Object, error) {
	var k kept
	obj := n.engine.driver.New()
	err := json.Unmarshal(data, &k)
	if err == nil {
		err = json.Unmarshal(k.Object, obj)
	}
	if err != nil {
		return kept{}, nil, fmt.Errorf("the record cannot be read; nothing is created or deleted until it is restored: %w", err)
	}
	return k, obj, nil
}

// fromManifest returns the object of a manifest.
func (e *Engine) fromManifest(manifest map[string]any) (Object, error) {
	data, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	obj := e.driver.New()
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	annotations := obj.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(engineAnnotations(), key) })
	obj.SetAnnotations(annotations)
	obj.SetFinalizers(nil)
	obj.SetOwnerReferences(nil)
	return obj, nil
}

// engineAnnotations are those that only the passes set.
func engineAnnotations() []string {
	return []string{api.AnnotationExternal, api.AnnotationReconcile, api.AnnotationLastApplied}
}

// uidOf returns the UID of a node's object. It is always the same for the same component and node.
func uidOf(r node.Request) types.UID {
	h := sha256.Sum256([]byte(string(r.ComponentUID) + " " + r.Key))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

// sameSpec reports whether two objects have the same spec.
func sameSpec(a, b Object) bool {
	return reflect.DeepEqual(applied.SpecOf(a), applied.SpecOf(b))
}

// carry takes over what a manifest does not say.
func carry(from, to Object) {
	if value, found := from.GetAnnotations()[api.AnnotationExternal]; found {
		annotate(to, api.AnnotationExternal, value)
	}
	carryStatus(from, to)
}

func carryStatus(from, to Object) {
	a, b := statusField(reflect.ValueOf(from)), statusField(reflect.ValueOf(to))
	if a.IsValid() && b.IsValid() {
		b.Set(a)
	}
}

// virtual is a [Run]: a pass over an object that exists only in the record of a node.
type virtual struct {
	nodes   *Nodes
	request node.Request
	kept    kept
	obj     Object
	report  conditions.Report
	// later: the pass ended for the record to be written with the annotation value.
	later bool
	value string
}

// open begins a pass over a node.
func (n *Nodes) open(r node.Request, deleting bool) (*virtual, error) {
	k, obj, err := n.restore(r.Record)
	if err != nil {
		return nil, err
	}
	v := &virtual{nodes: n, request: r, kept: k, obj: obj}
	v.dress(obj, deleting)
	return v, nil
}

// dress gives an object what its record does not have.
func (v *virtual) dress(obj Object, deleting bool) {
	obj.SetUID(uidOf(v.request))
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for key, value := range map[string]string{
		api.AnnotationReconcile: v.request.Asked,
		api.AnnotationPaused:    word(v.request.Paused, "true"),
		api.AnnotationDeletion:  word(v.request.Keep, "orphan"),
	} {
		if value != "" {
			annotations[key] = value
		}
	}
	obj.SetAnnotations(annotations)
	if deleting {
		obj.SetDeletionTimestamp(new(metav1.NewTime(time.Now())))
	}
}

func word(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// record returns the record after the pass. ready: the resource is.
func (v *virtual) record(ready bool) ([]byte, error) {
	k, obj, err := v.nodes.restore(v.request.Record)
	if err != nil {
		return nil, err
	}
	if value := v.obj.GetAnnotations()[api.AnnotationExternal]; value != "" {
		annotate(obj, api.AnnotationExternal, value)
	}
	if v.later {
		annotate(obj, api.AnnotationExternal, v.value)
	}
	if ready {
		k.Ready = true
		carryStatus(v.obj, obj)
	}
	return k.with(obj)
}

// first is the answer if the record has to be written first.
func (v *virtual) first() node.Answer {
	next, err := v.record(false)
	return node.Answer{Record: next, RecordFirst: err == nil, Err: err}
}

// isReady reports whether the resource is as the present manifest asks.
func (v *virtual) isReady() bool {
	c := v.report.Ready()
	return c != nil && c.Status == metav1.ConditionTrue && (c.ObservedGeneration == 0 || c.ObservedGeneration == v.obj.GetGeneration())
}

// Object implements [Run].
func (v *virtual) Object() Object { return v.obj }

// SetObject implements [Run].
func (v *virtual) SetObject(obj Object) { v.obj = obj }

// CompleteSpec implements [Run]. No driver of dependents has a LateInit.
func (v *virtual) CompleteSpec(context.Context, map[string]any) error {
	return errors.New("the spec of a dependent belongs to its component")
}

// Persist implements [Run]. It ends the pass: the component writes the record, and begins another. The record
// must not be replaced because of an old copy of the component.
func (v *virtual) Persist(ctx context.Context) error {
	now, err := v.request.Durable(ctx)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(now, v.request.Record):
		return loop.Outdated(errors.New("the record has changed meanwhile"))
	}
	v.later, v.value = true, v.obj.GetAnnotations()[api.AnnotationExternal]
	return errRecordFirst
}

// Certain implements [Run]: the component makes sure of itself before it changes anything.
func (v *virtual) Certain(context.Context) error { return nil }

// Vanished implements [Run].
func (v *virtual) Vanished() bool { return false }

// Client implements [Run].
func (v *virtual) Client() client.Client { return v.request.Run.Client() }

// Live implements [Run].
func (v *virtual) Live() client.Reader { return virtualReader{v.request.Run.Live(), v} }

// Terms implements [Run].
func (v *virtual) Terms() loop.Terms { return v.request.Run.Terms() }

// Retry implements [Run].
func (v *virtual) Retry() loop.RetryInfo { return v.request.Run.Retry() }

// SetState implements [Run].
func (v *virtual) SetState(string, string, string) {}

// Report implements [Run].
func (v *virtual) Report(r conditions.Report) { v.report = r }

// Event implements [Run].
func (v *virtual) Event(kind, reason, note string) { v.request.Run.Event(kind, reason, note) }

// Log implements [Run].
func (v *virtual) Log() logr.Logger { return v.request.Run.Log() }

// Sharing implements [Run]. It knows the nodes of which this process has made a pass.
func (v *virtual) Sharing(_ context.Context, key string) ([]Object, error) {
	n := v.nodes
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []Object
	for _, k := range n.known {
		if slices.Contains(k.keys, key) {
			found = append(found, k.obj)
		}
	}
	return found, nil
}

// virtualReader reads an object that exists only in a record from there.
type virtualReader struct {
	client.Reader
	v *virtual
}

// Get implements [client.Reader].
func (r virtualReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	obj, ours := into.(Object)
	if !ours || reflect.TypeOf(into) != reflect.TypeOf(r.v.obj) || key != client.ObjectKeyFromObject(r.v.obj) {
		return r.Reader.Get(ctx, key, into, opts...)
	}
	data, err := r.v.request.Durable(ctx)
	switch {
	case err != nil:
		return err
	case len(data) == 0:
		return loop.Outdated(errors.New("the record is gone"))
	}
	_, now, err := r.v.nodes.restore(data)
	if err != nil {
		return err
	}
	r.v.dress(now, !r.v.obj.GetDeletionTimestamp().IsZero())
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(now).Elem())
	return nil
}
