package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/trace"
)

// functionKind is the kind of functions in inventories and annotations. No such objects exist.
func functionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "trimtab.dev", Version: "v1", Kind: "Function"}
}

// Do adds a function that is called once, when everything that comes before it is ready. It is called again if
// the digest changes, but not if the operator restarts. It is ready when it has returned nil. An error is a
// failure of the component, and the call is repeated. The call is recorded after it has ended, so f is called
// once more if the operator is killed in between: it must be safe to repeat. Deleting the component does not
// undo it.
//
// The context is that of a hook. In annotations that name the function, its kind is Function.
func (s *Set) Do(name, digest string, f func(ctx context.Context) error) *Dependent {
	return s.Add(newFunction(name, map[string]any{"digest": digest}, func(ctx context.Context) (string, error) { return "", f(ctx) }))
}

// Gate adds a condition that must be true before what comes after it is applied. f is called at the given
// interval, for the first time when everything that comes before the gate is ready. While why is not empty, the
// gate is closed, and the component's status shows why, as in "the license is not valid yet". As long as the cause
// is the same, why must be the same. The interval is at least a second.
func (s *Set) Gate(name string, every time.Duration, f func(ctx context.Context) (why string, err error)) *Dependent {
	return s.Add(newFunction(name, map[string]any{"every": max(every, time.Second).String()}, f))
}

// function is a rendered function.
type function struct {
	unstructured.Unstructured

	call func(context.Context) (why string, err error)
}

func newFunction(name string, spec map[string]any, call func(context.Context) (string, error)) *function {
	f := &function{call: call}
	f.Object = map[string]any{"spec": spec}
	f.SetGroupVersionKind(functionKind())
	f.SetName(name)
	return f
}

// DeepCopyObject implements [runtime.Object].
func (f *function) DeepCopyObject() runtime.Object {
	return &function{Unstructured: *f.DeepCopy(), call: f.call}
}

// functions is the [node.Driver] of functions.
type functions struct{}

// functionRecord is the record of a function.
type functionRecord struct {
	// Digest is what it is called for, Every how often. Done: it was called for Digest.
	Digest string `json:"digest,omitempty"`
	Every  string `json:"every,omitempty"`
	Done   bool   `json:"done,omitempty"`
}

// About implements [node.Driver].
func (functions) About() node.About {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(functionKind())
	return node.About{Object: o, Forgetful: true}
}

// Record implements [node.Driver].
func (functions) Record(_ context.Context, r node.Request) ([]byte, error) {
	var now, before functionRecord
	now.Digest, _, _ = unstructured.NestedString(r.Manifest, "spec", "digest")
	now.Every, _, _ = unstructured.NestedString(r.Manifest, "spec", "every")
	if len(r.Record) > 0 && json.Unmarshal(r.Record, &before) == nil && before.Digest == now.Digest && before.Every == now.Every {
		return r.Record, nil
	}
	return json.Marshal(now)
}

// Observed implements [node.Driver].
func (functions) Observed([]byte) (client.Object, error) { return nil, nil }

// Apply implements [node.Driver].
func (functions) Apply(ctx context.Context, r node.Request) node.Answer {
	var record functionRecord
	if err := json.Unmarshal(r.Record, &record); err != nil {
		return node.Answer{Err: fmt.Errorf("its record cannot be read: %w", err)}
	}
	current := node.Answer{Health: health.Result{Status: health.Current}}
	if record.Done {
		return current
	}
	if r.Paused {
		return node.Answer{Health: health.Result{Status: health.InProgress, Why: "is not called in the present mode"}}
	}
	rendered, err := r.Rendered(ctx)
	if err != nil {
		return node.Answer{Err: err}
	}
	f, ok := rendered.(*function)
	if !ok {
		return node.Answer{Err: errors.New("objects of kind Function are made by Set.Do and Set.Gate")}
	}
	if loop.IsDryRun(ctx) {
		trace.From(ctx).Emit(trace.Call{Op: "function", Target: f.GetName(), Mutating: true, Result: "held back"})
		return node.Answer{Health: health.Result{Status: health.InProgress, Why: "would be called"}}
	}
	why, err := f.call(ctx)
	if err != nil {
		return node.Answer{Err: err}
	}
	if record.Every == "" {
		record.Done = true
		current.Record, current.Err = json.Marshal(record)
		return current
	}
	if current.Again, err = time.ParseDuration(record.Every); err != nil {
		return node.Answer{Err: err}
	}
	if why != "" {
		current.Health = health.Result{Status: health.InProgress, Why: why}
	}
	return current
}

// DryRunSafe implements [loop.DryRunner].
func (functions) DryRunSafe() bool { return true }

// Delete implements [node.Driver].
func (functions) Delete(context.Context, node.Request) node.Answer { return node.Answer{Gone: true} }
