package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// othersFinalizer is put on dependents by somebody else.
const othersFinalizer = "others.example.org/hold"

// KeepSecond is the race of [Orders] in which second is wanted again.
const KeepSecond = "want second again"

// Orders returns the scenario of a component with three waves: a Job in the second has to complete before
// the third, and is purged then. Somebody puts a finalizer on two dependents: one is pruned, and one has to go
// before the others when the component is deleted. One dependent was there before, is
// adopted, and stays.
func Orders() []fault.Scenario {
	b := &bundle.Bundle{ObjectMeta: named("a", nil)}
	first, kept := configMapOf("first", "1", "delete-order=1"), configMapOf("kept", "1", "delete-policy=orphan")
	second, third := configMapOf("second", "1", "apply-order=1"), configMapOf("third", "1", "apply-order=2")
	b.Spec.Objects = []runtime.RawExtension{first, kept, jobOf("migrate", "apply-order=1", "purge-order=1"), second, third}
	edited := configMapOf("first", "2", "delete-order=1")
	early := objects(edited, kept, b.Spec.Objects[2], second, third)
	later := objects(edited, kept, b.Spec.Objects[2], third)
	steps := []fault.Step{
		{Name: "somebody creates kept", Do: createFrom(configMapOf("kept", "1"))},
		fault.Create(b).Expecting(configMaps("first=1", "kept=1", "second=1")).Expecting(jobExists(true)),
		fault.Step{Name: "the Job completes", Do: completeJob}.Becomes(b, api.ConditionReady).
			Expecting(configMaps("first=1", "kept=1", "second=1", "third=1")).Expecting(jobExists(false)),
		{Name: "somebody holds second and third", Do: hold("second", "third")},
		fault.Merge(b, later).Expecting(configMaps("first=2", "kept=1", "second=1", "third=1")).Expecting(leaving("second", true)),
		fault.Step{Name: "second is released", Do: unhold("second")}.Becomes(b, api.ConditionReady).Expecting(configMaps("first=2", "kept=1", "third=1")),
		fault.Delete(b).Expecting(configMaps("first=2", "third=1")).Expecting(leaving("third", true)).Expecting(leaving("first", false)),
		fault.Step{Name: "third is released", Do: unhold("third")}.Gone(b).Expecting(configMaps()).Expecting(leaving("kept", false)),
	}
	orders := bundleScenario("component-orders", bundlesWith(jobsWithTime), steps, "update configmaps", "update jobs.batch", "list jobs.batch", "get jobs.batch")
	return []fault.Scenario{racing(orders, fault.Delete(b), fault.Recreate(b), fault.Merge(b, early).Named(KeepSecond))}
}

// objects is a patch that gives a Bundle other dependents.
func objects(list ...runtime.RawExtension) string {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": list}})
	if err != nil {
		panic(err)
	}
	return string(patch)
}

// jobsWithTime adds Jobs, and time: how long something takes is not what this is about.
func jobsWithTime(_ *fault.Env, o *component.Options[*bundle.Bundle]) {
	o.Timeout = 24 * time.Hour
	o.Kinds = append(o.Kinds, batchv1.SchemeGroupVersion.WithKind("Job"))
}

// configMapOf is a dependent of a Bundle with annotations of its operator, each as name=value.
func configMapOf(name, value string, settings ...string) runtime.RawExtension {
	return annotated(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"value": value},
	}, settings)
}

func jobOf(name string, settings ...string) runtime.RawExtension {
	container := map[string]any{"name": "main", "image": "migrate:1"}
	return annotated(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": []any{container}}}},
	}, settings)
}

func annotated(manifest map[string]any, settings []string) runtime.RawExtension {
	annotations := map[string]any{}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		annotations[bundles+"/"+name] = value
	}
	metadata, _ := manifest["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["annotations"], manifest["metadata"] = annotations, metadata
	raw, err := json.Marshal(manifest)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// createFrom creates an object, in namespace default.
func createFrom(manifest runtime.RawExtension) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(manifest.Raw); err != nil {
			return err
		}
		u.SetNamespace(metav1.NamespaceDefault)
		return w.Client.Create(ctx, u)
	}
}

func jobExists(want bool) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "migrate"}, &batchv1.Job{})
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == want {
			return fmt.Errorf("the Job: %w, want it to exist: %t", err, want)
		}
		return nil
	}
}

// completeJob does what the controller of Jobs does when the Pod has succeeded.
func completeJob(ctx context.Context, w *fault.World) error {
	at := metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	condition := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at, LastProbeTime: at}
	}
	j := &batchv1.Job{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "migrate"}, j); err != nil {
		return err
	}
	j.Status = batchv1.JobStatus{
		StartTime: &at, CompletionTime: &at, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)},
	}
	return w.Client.Status().Update(ctx, j)
}

// hold puts a finalizer on ConfigMaps.
func hold(names ...string) func(context.Context, *fault.World) error {
	return patchConfigMaps(`{"metadata":{"finalizers":["`+othersFinalizer+`"]}}`, names...)
}

func unhold(name string) func(context.Context, *fault.World) error {
	return patchConfigMaps(`{"metadata":{"finalizers":null}}`, name)
}

func patchConfigMaps(patch string, names ...string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		for _, name := range names {
			m := &corev1.ConfigMap{ObjectMeta: named(name, nil)}
			m.Namespace = metav1.NamespaceDefault
			if err := w.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				return err
			}
		}
		return nil
	}
}

// leaving expects a ConfigMap that exists and whose deletion has begun, or has not.
func leaving(name string, want bool) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		m := &corev1.ConfigMap{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}, m); err != nil {
			return err
		}
		if is := m.DeletionTimestamp != nil; is != want {
			return fmt.Errorf("ConfigMap %s is being deleted: %t, want %t", name, is, want)
		}
		return nil
	}
}
