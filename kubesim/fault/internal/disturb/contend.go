package disturb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/sandbox"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/schedule"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// OfStatus is the argument of a disturbance in which another controller writes conditions, OfFinalizer of one in which
// it holds the object; without an argument, it writes annotations.
const (
	OfStatus    = "status"
	OfFinalizer = "finalizer"
)

// contentions is how often another controller comes first in one step: more often than client-go's RetryOnConflict
// tries, and less often than a back-off takes to grow to minutes.
const contentions = 8

// rival is another controller that writes an object before each write of the operator to it.
type rival struct {
	of     history.Call // that names the object
	status bool
	step   int
	left   int // how often it still comes
}

// contend lets another controller write the object of a call, as a schedule has it.
func (o *Others) contend(c *history.Call) {
	if d, ok := o.Schedule.Find(c.Index, schedule.Contended); ok {
		if d.Arg == OfFinalizer {
			o.record.Disturbed(d.Kind, c.Index, "a finalizer: "+c.What)
			o.hold(c)
			return
		}
		o.record.Disturbed(d.Kind, c.Index, c.What)
		o.rival = &rival{of: *c, status: d.Arg == OfStatus, step: o.record.Step(), left: contentions}
	}
	r := o.rival
	if r == nil || r.left == 0 || r.step != o.record.Step() || !c.Write || !IsAboutSame(c, &r.of) {
		return
	}
	r.left--
	if !r.status {
		o.touch(c)
		return
	}
	err := o.box.Do(history.Foreigner, func(ctx context.Context, w *sandbox.World) error { return o.addCondition(ctx, w, c) })
	o.Void = o.Void || err != nil && r.left == contentions-1 // later the object may be gone
}

// IsAboutSame reports whether two calls name the same object.
func IsAboutSame(a, b *history.Call) bool {
	return a.Side == history.Kubernetes && b.Side == history.Kubernetes && a.Name != "" &&
		a.Group == b.Group && a.Resource == b.Resource && a.Namespace == b.Namespace && a.Name == b.Name
}

// addCondition writes a condition of a type that is not the operator's, with a new message each time.
func (o *Others) addCondition(ctx context.Context, w *sandbox.World, c *history.Call) error {
	u, err := o.read(ctx, w, c)
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return err
	}
	since := time.Now().UTC().Format(time.RFC3339)
	at := slices.IndexFunc(conditions, state.IsForeignCondition)
	if at < 0 {
		at = len(conditions)
		conditions = append(conditions, nil)
	} else if before, ok := conditions[at].(map[string]any); ok {
		since, _ = before["lastTransitionTime"].(string)
	}
	conditions[at] = map[string]any{
		"type": state.ForeignCondition, "status": string(metav1.ConditionTrue), "reason": "SomebodyElse",
		"message": fmt.Sprintf("before call %d", c.Index), "lastTransitionTime": since,
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	return w.Client.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody-else"), lenient())
}

// lenient lets a patch have fields that a kind does not: conditions of Deployments have no observedGeneration.
func lenient() *client.SubResourcePatchOptions {
	return &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{FieldValidation: metav1.FieldValidationIgnore}}
}
