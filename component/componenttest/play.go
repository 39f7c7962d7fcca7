package componenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Observe writes the status of an object as its controller would: ready or not, for the present spec. It
// knows Deployment, StatefulSet, DaemonSet and Job; any other kind gets observedGeneration and a condition
// Ready. A Job that is ready is complete; one that is not has failed.
func Observe(t testing.TB, c client.Client, obj client.Object, ready bool) {
	t.Helper()
	u := read(t, c, obj)
	if err := setStatus(t.Context(), c, u, ready); err != nil {
		t.Fatal(err)
	}
}

// Finish ends the deletion of an object: it removes [Finalizer].
func Finish(t testing.TB, c client.Client, obj client.Object) {
	t.Helper()
	if err := finish(t.Context(), c, read(t, c, obj)); err != nil {
		t.Fatal(err)
	}
}

// Play plays the controllers of some kinds in a namespace until the test ends: objects become ready, and
// deletions that [Finalizer] holds end. Where real controllers run, as on a devcluster, play none of theirs.
func Play(t testing.TB, c client.WithWatch, namespace string, kinds ...schema.GroupVersionKind) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var players sync.WaitGroup
	for _, kind := range kinds {
		players.Go(func() { play(ctx, t, c, namespace, kind) })
	}
	t.Cleanup(func() {
		cancel()
		players.Wait()
	})
}

// play watches a kind until ctx ends.
func play(ctx context.Context, t testing.TB, c client.WithWatch, namespace string, kind schema.GroupVersionKind) {
	t.Helper()
	for ctx.Err() == nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		events, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("play %s: %v", kind.Kind, err)
			}
			return
		}
		for event := range events.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok || u.GetKind() != kind.Kind {
				continue
			}
			if err := respond(ctx, c, u); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				t.Errorf("play %s %s: %v", kind.Kind, u.GetName(), err)
			}
		}
	}
}

// respond does what the controller of an object would.
func respond(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	if u.GetDeletionTimestamp() != nil {
		return finish(ctx, c, u)
	}
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen == u.GetGeneration() {
		return nil
	}
	if _, done, _ := unstructured.NestedString(u.Object, "status", "completionTime"); done {
		return nil
	}
	return setStatus(ctx, c, u, true)
}

func read(t testing.TB, c client.Client, obj client.Object) *unstructured.Unstructured {
	t.Helper()
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func setStatus(ctx context.Context, c client.Client, u *unstructured.Unstructured, ready bool) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": u.GetUID(), "resourceVersion": u.GetResourceVersion()}, "status": statusOf(u, ready, time.Now()),
	})
	if err != nil {
		return fmt.Errorf("encode a status: %w", err)
	}
	return c.Status().Patch(ctx, u, client.RawPatch(types.MergePatchType, patch))
}

// statusOf is the status that the controller of an object would write.
func statusOf(u *unstructured.Unstructured, ready bool, now time.Time) map[string]any {
	text := now.UTC().Format(time.RFC3339)
	condition := func(kind string, is bool) map[string]any {
		status := metav1.ConditionFalse
		if is {
			status = metav1.ConditionTrue
		}
		return map[string]any{"type": kind, "status": string(status), "reason": "Played", "message": "", "lastTransitionTime": text}
	}
	generation := u.GetGeneration()
	replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	up := replicas
	if !ready {
		up = 0
	}
	switch u.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps":
		return map[string]any{
			"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": up, "availableReplicas": up,
			"unavailableReplicas": replicas - up, "conditions": []any{condition("Available", ready)},
		}
	case "StatefulSet.apps":
		return map[string]any{
			"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas, "currentReplicas": replicas,
			"readyReplicas": up, "availableReplicas": up, "currentRevision": "played", "updateRevision": "played",
		}
	case "DaemonSet.apps":
		return map[string]any{
			"observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "updatedNumberScheduled": 1,
			"numberReady": min(up, 1), "numberAvailable": min(up, 1), "numberUnavailable": 1 - min(up, 1), "numberMisscheduled": 0,
		}
	case "Job.batch":
		if ready {
			return map[string]any{
				"startTime": text, "completionTime": text, "succeeded": 1, "uncountedTerminatedPods": map[string]any{},
				"conditions": []any{condition("SuccessCriteriaMet", true), condition("Complete", true)},
			}
		}
		return map[string]any{
			"startTime": text, "failed": 1, "uncountedTerminatedPods": map[string]any{},
			"conditions": []any{condition("FailureTarget", true), condition("Failed", true)},
		}
	}
	return map[string]any{"observedGeneration": generation, "conditions": []any{condition("Ready", ready)}}
}

func finish(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	left := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(f string) bool { return strings.HasPrefix(f, Group+"/") })
	if len(left) == len(u.GetFinalizers()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": left}})
	if err != nil {
		return fmt.Errorf("encode finalizers: %w", err)
	}
	return c.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch))
}
