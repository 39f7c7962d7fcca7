package disturb

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// Drift is what somebody else does to an object that the operator made: a child.
type Drift struct {
	// Made is the call that created the child, or [history.Nobody].
	Made int

	of     history.Call               // that names the child
	fields []field                    // of which the first one that may be is changed; nil deletes the child
	before *unstructured.Unstructured // the child before a user's change that is not undone; nil for none
}

// field is the way to a value in an object: names, and numbers in lists.
type field []any

// mostFields is how many fields are tried: in a large object, many may be immutable.
const mostFields = 20

// Drifts lists what may be done at the end of a step to what the operator made: each child is deleted, and edited if it has
// something that the operator wrote.
func Drifts(r *history.Run, step int) (all []Drift) {
	children := map[string]*Drift{}
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.Rev > r.Steps[step].SettledRev {
			break
		}
		if !history.Housekeeping(h.Group, h.Resource) {
			noteChild(children, r, h)
		}
	}
	played := playedByUsers(r)
	for _, key := range slices.Sorted(maps.Keys(children)) {
		c := children[key]
		if played[key] || isAbandoned(r, c.Made, step) || r.IsRandom != nil && r.IsRandom(c.of.Resource, c.of.Name) {
			continue
		}
		if c.before == nil { // else the user's change would be lost
			all = append(all, Drift{Made: c.Made, of: c.of})
		}
		if len(c.fields) > 0 {
			all = append(all, *c)
		}
	}
	return all
}

// playedByUsers are the objects of which steps write the status, in place of a controller that is not there: if one is created
// again or changed, nobody writes it once more.
func playedByUsers(r *history.Run) map[string]bool {
	played := map[string]bool{}
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.By == history.User && h.Before != nil && h.After != nil && !reflect.DeepEqual(h.Before.Object["status"], h.After.Object["status"]) {
			played[state.Key(h.Group, h.Resource, h.Namespace, h.Name)] = true
		}
	}
	return played
}

// noteChild notes what a change says of the operator's children.
func noteChild(children map[string]*Drift, r *history.Run, h *history.Change) {
	key := state.Key(h.Group, h.Resource, h.Namespace, h.Name)
	switch {
	case h.After == nil || h.After.GetDeletionTimestamp() != nil || h.Before == nil && h.By != history.Operator:
		delete(children, key)
	case h.Before == nil:
		children[key] = &Drift{Made: h.Call, of: history.Call{Group: h.Group, Resource: h.Resource, Namespace: h.Namespace, Name: h.Name}}
	}
	c := children[key]
	switch {
	case c == nil || h.Before == nil:
	case c.before != nil && sameContent(c.before, h.After):
		c.before = nil
	case c.before == nil && h.By == history.User && !sameContent(h.Before, h.After):
		c.before = h.Before
	}
	if c == nil || h.By != history.Operator || h.Call == history.Nobody {
		return
	}
	if call := &r.Calls[h.Call]; IsAboutSame(call, &c.of) {
		if fields := fieldsOf(call.Sent); len(fields) > 0 {
			c.fields = fields
		}
	}
}

// sameContent reports whether two versions of an object differ in their status and the server's book-keeping at most.
func sameContent(a, b *unstructured.Unstructured) bool {
	content := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
		delete(u.Object, "status")
		return u.Object
	}
	return reflect.DeepEqual(content(a), content(b))
}

// isAbandoned reports whether the object for which a child was made is gone or going at the end of a step: nobody restores then
// what is to outlive it.
func isAbandoned(r *history.Run, made, step int) bool {
	if made == history.Nobody || r.Calls[made].Pass == history.Nobody {
		return false
	}
	name := r.Passes[r.Calls[made].Pass].Object
	was, there := false, map[string]bool{}
	for i := range r.Changes {
		h := &r.Changes[i]
		if h.Rev > r.Steps[step].SettledRev {
			break
		}
		if strings.TrimPrefix(h.Namespace+"/"+h.Name, "/") != name {
			continue
		}
		key := state.Key(h.Group, h.Resource, h.Namespace, h.Name)
		switch {
		case h.After == nil || h.After.GetDeletionTimestamp() != nil:
			delete(there, key)
		case h.Before == nil && h.By != history.Operator:
			was, there[key] = true, true
		}
	}
	return was && len(there) == 0
}

// fieldsOf are the ways to the values that the author of an object wrote, those of its content first.
func fieldsOf(sent map[string]any) (all []field) {
	var walk func(way field, v any)
	walk = func(way field, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(append(slices.Clip(way), key), v[key])
			}
		case []any:
			for i, e := range v {
				walk(append(slices.Clip(way), i), e)
			}
		case nil:
		default:
			if v != "" && len(all) < mostFields { // a Go type has empty texts that nobody wrote
				all = append(all, way)
			}
		}
	}
	first := []string{"data", "stringData", "spec"}
	for _, key := range first {
		if key == "stringData" {
			walk(field{"data"}, sent[key]) // where the API server puts it
		} else {
			walk(field{key}, sent[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(append(first, "apiVersion", "kind", "metadata", "status"), key) {
			walk(field{key}, sent[key])
		}
	}
	return all
}

// Drift lets somebody else act on what the operator made, when a step is over.
func (o *Others) Drift(d schedule.Disturbance) error {
	o.drift(d, history.Nobody, d.At)
	return o.Broken
}

// drift does one of what may be done to what the operator made by the end of a step. Where that is not there, or the API server
// refuses all edits, the run says nothing.
func (o *Others) drift(d schedule.Disturbance, call, step int) {
	all := Drifts(o.Like, step)
	n, err := strconv.Atoi(d.Arg)
	if err != nil || n < 0 || n >= len(all) {
		o.Broken = fmt.Errorf("%s names none of the %d drifts of step %d; list the schedules with -fault.list", d, len(all), step)
		return
	}
	change, done := all[n], ""
	u, err := o.box.ObjectOf(&change.of)
	if err == nil {
		err = o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) error {
			done, err = o.do(ctx, w, &change, u)
			return err
		})
	}
	if err != nil {
		o.Void = true
		done = fmt.Sprintf("kubectl cannot change %s: %v", change.name(), err)
	}
	o.record.Disturbed(d.Kind, call, done)
}

// SayNothingIfHeld makes the run say nothing if what somebody deleted is still there because others hold it by their finalizers: the
// operator cannot create it again before they let go.
func (o *Others) SayNothingIfHeld() error {
	if o.deleted == nil {
		return nil
	}
	u := o.deleted.DeepCopy()
	if err := o.box.World().Client.Get(context.Background(), client.ObjectKeyFromObject(u), u); err != nil {
		return client.IgnoreNotFound(err)
	}
	if u.GetUID() == o.deleted.GetUID() && u.GetDeletionTimestamp() != nil && !slices.ContainsFunc(u.GetFinalizers(), o.isOperators) {
		o.Void = true
	}
	return nil
}

// isOperators reports whether the operator puts a finalizer on objects.
func (o *Others) isOperators(finalizer string) bool {
	has := func(u *unstructured.Unstructured) bool {
		return u != nil && slices.Contains(u.GetFinalizers(), finalizer)
	}
	return slices.ContainsFunc(o.Like.Changes, func(h history.Change) bool {
		return h.By == history.Operator && has(h.After) && !has(h.Before)
	})
}

// name is the child as reports name it.
func (d *Drift) name() string {
	return d.of.Resource + " " + strings.TrimPrefix(d.of.Namespace+"/"+d.of.Name, "/")
}

// do deletes or edits the child, and says which.
func (o *Others) do(ctx context.Context, w *sandbox.World, d *Drift, u *unstructured.Unstructured) (done string, err error) {
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		return "", err
	}
	if u.GetDeletionTimestamp() != nil {
		return "", errors.New("it is being deleted already")
	}
	if d.fields == nil {
		o.deleted = u
		return "kubectl deletes " + d.name(), w.Client.Delete(ctx, u, client.PropagationPolicy("Background"))
	}
	err = errors.New("nothing that the operator wrote is left in it")
	for _, f := range d.fields {
		edited := u.DeepCopy()
		value, ok := f.drift(edited.Object, d.of.Resource == "secrets" && d.of.Group == "")
		if !ok {
			continue
		}
		patch := client.MergeFromWithOptions(u, client.MergeFromWithOptimisticLock{})
		err = w.Client.Patch(ctx, edited, patch, client.FieldOwner("kubectl-edit"))
		if err == nil && edited.GetResourceVersion() != u.GetResourceVersion() {
			return fmt.Sprintf("kubectl sets %s of %s to %v", f, d.name(), value), nil
		}
	}
	return "", err
}

// String is the way as users write it: "spec.ports[0].port".
func (f field) String() string {
	var b strings.Builder
	for _, step := range f {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			fmt.Fprintf(&b, ".%v", step)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// drift changes the value in an object to another one, which it returns; false if there is no such value.
func (f field) drift(content any, secret bool) (value any, ok bool) {
	for _, step := range f[:len(f)-1] {
		content = below(content, step)
	}
	last := f[len(f)-1]
	switch v := below(content, last).(type) {
	case string:
		if value = "drifted"; secret && f[0] == "data" || f[0] == "binaryData" {
			value = base64.StdEncoding.EncodeToString([]byte("drifted"))
		}
	case bool:
		value = !v
	case int64:
		value = v + 1
	case float64:
		value = v + 1
	default:
		return nil, false
	}
	switch in := content.(type) {
	case map[string]any:
		name, _ := last.(string)
		in[name] = value
	case []any:
		i, _ := last.(int)
		in[i] = value
	}
	return value, true
}

// below is the value one step further on the way; nil if there is none.
func below(content, step any) any {
	switch step := step.(type) {
	case string:
		m, _ := content.(map[string]any)
		return m[step]
	case int:
		if list, _ := content.([]any); step < len(list) {
			return list[step]
		}
	}
	return nil
}
