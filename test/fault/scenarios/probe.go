package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Loop returns the scenarios of a controller on the bare loop: each Probe has a ConfigMap
// with its size, which goes with it, and waits for the Probe that it needs.
func Loop() []fault.Scenario {
	a := &probe.Probe{ObjectMeta: named("a", nil), Spec: probe.ProbeSpec{Size: 1}}
	b := &probe.Probe{ObjectMeta: named("b", nil), Spec: probe.ProbeSpec{Size: 2, Needs: "a"}}
	life := []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(configMap("a", "1")),
		fault.Merge(a, `{"spec":{"size":7}}`).Becomes(a, api.ConditionReady).Expecting(configMap("a", "7")),
		{Name: "somebody deletes the ConfigMap", Do: loseConfigMap},
		fault.Delete(a).Gone(a).Expecting(configMap("a", "")),
	}
	life[2] = life[2].Expecting(configMap("a", "7"))
	needing := []fault.Step{
		fault.Create(b).Expecting(reason(b, "NeedsAnother")).Expecting(configMap("b", "")),
		fault.Create(a).Becomes(b, api.ConditionReady).Expecting(configMap("b", "2")),
		fault.Delete(b).Gone(b).Expecting(configMap("b", "")),
		fault.Delete(a).Gone(a),
	}
	return []fault.Scenario{
		loopScenario("loop-life", life),
		racing(loopScenario("loop-needs", needing), fault.Delete(b), fault.Recreate(b), fault.Recreate(a), when(told(b), fault.Delete(a)),
			fault.Merge(b, `{"spec":{"size":3}}`), fault.Merge(a, `{"spec":{"size":7}}`)),
		electing(loopScenario("loop-election", life[:2])),
	}
}

func loopScenario(name string, steps []fault.Step) fault.Scenario {
	return fault.Scenario{Name: name, Operator: simulated(keeperOperator), Steps: steps}
}

// electing runs two processes of which one leads.
func electing(s fault.Scenario) fault.Scenario {
	s.Replicas, s.Operator = 2, simulated(keeperOperator, "--leader-elect")
	return s
}

func keeperOperator(env *fault.Env) operator.Options {
	return operator.Options{
		Name: "keeper", AddToScheme: probe.AddToScheme, CRDs: probe.CRDs,
		Controllers: func() ([]operator.Controller, error) { return []operator.Controller{keeperController(env)}, nil },
	}
}

func keeperController(env *fault.Env) operator.Controller {
	names := func(p *probe.Probe) []types.NamespacedName {
		env.Author("Names")
		return needs(p)
	}
	return loop.New(keeper{env}, loop.Options[*probe.Probe]{
		Sources: []trigger.Source[*probe.Probe]{
			trigger.Reference[*probe.Probe]{To: &probe.Probe{}, Names: names},
			trigger.Reference[*probe.Probe]{To: &corev1.ConfigMap{}, Names: sameName},
		},
		Needs: []loop.Need{{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Verbs:            []string{"get", "list", "watch", "create", "patch", "delete"},
		}},
	})
}

// sameName is the ConfigMap of a Probe.
func sameName(p *probe.Probe) []types.NamespacedName {
	return []types.NamespacedName{client.ObjectKeyFromObject(p)}
}

func needs(p *probe.Probe) []types.NamespacedName {
	if p.Spec.Needs == "" {
		return nil
	}
	return []types.NamespacedName{{Namespace: p.Namespace, Name: p.Spec.Needs}}
}

// keeper keeps a ConfigMap for each Probe.
type keeper struct{ env *fault.Env }

var _ interface {
	loop.Reconciler[*probe.Probe]
	loop.Cleaner[*probe.Probe]
} = keeper{}

// Reconcile makes the ConfigMap or corrects it.
func (k keeper) Reconcile(ctx context.Context, r *loop.Run[*probe.Probe]) loop.Outcome {
	k.env.Author("Reconcile")
	for _, key := range needs(r.Obj) {
		var other probe.Probe
		err := r.Client().Get(ctx, key, &other)
		if client.IgnoreNotFound(err) != nil {
			return loop.Fail(err)
		}
		if err != nil || !meta.IsStatusConditionTrue(other.Status.Conditions, api.ConditionReady) {
			return loop.WaitFor("NeedsAnother", loop.Dep{Kind: "Probe", Namespace: key.Namespace, Name: key.Name, Why: "is not ready"})
		}
	}
	size := strconv.Itoa(r.Obj.Spec.Size)
	if err := keep(ctx, r, size); err != nil {
		return loop.Fail(err)
	}
	k.env.Author("after Reconcile")
	r.Obj.Status.Note = "kept " + size
	return loop.Done()
}

func keep(ctx context.Context, r *loop.Run[*probe.Probe], size string) error {
	c, obj := r.Client(), r.Obj
	var have corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), &have)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Certain(ctx); err != nil { // the object may be gone, or about to go
			return err
		}
		made := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: obj.Namespace, Name: obj.Name,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, probe.GroupVersion.WithKind("Probe"))},
			},
			Data: map[string]string{"size": size},
		}
		if err := c.Create(ctx, made); !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The cache is behind. What is there is corrected without reading it.
	case err != nil:
		return err
	case have.Data["size"] == size:
		return nil
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"size": size}})
	if err != nil {
		return err
	}
	have.Namespace, have.Name = obj.Namespace, obj.Name
	return c.Patch(ctx, &have, client.RawPatch(types.MergePatchType, patch))
}

// Cleanup deletes the ConfigMap.
func (k keeper) Cleanup(ctx context.Context, r *loop.Run[*probe.Probe]) loop.CleanupOutcome {
	k.env.Author("Cleanup")
	if err := discard(ctx, r); err != nil {
		return loop.CleanupFailed(err)
	}
	k.env.Author("after Cleanup")
	return loop.CleanedUp()
}

// discard deletes the ConfigMap that the cache shows, and none that took its place. The garbage collector deletes one
// that the cache does not show yet.
func discard(ctx context.Context, r *loop.Run[*probe.Probe]) error {
	var have corev1.ConfigMap
	err := r.Client().Get(ctx, client.ObjectKeyFromObject(r.Obj), &have)
	if err != nil || !metav1.IsControlledBy(&have, r.Obj) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.Client().Delete(ctx, &have, client.Preconditions{UID: &have.UID}))
}

func loseConfigMap(ctx context.Context, w *fault.World) error {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "a"}}
	return client.IgnoreNotFound(w.Client.Delete(ctx, c))
}

// configMap expects a ConfigMap with a size; none if the size is empty.
func configMap(name, size string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var c corev1.ConfigMap
		err := w.Client.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: name}, &c)
		switch {
		case apierrors.IsNotFound(err) && size == "":
			return nil
		case err != nil:
			return err
		case c.Data["size"] != size:
			return fmt.Errorf("ConfigMap %s holds size %q; want %q", name, c.Data["size"], size)
		}
		return nil
	}
}
