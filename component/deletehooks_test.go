package component_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// on is a task that is a delete hook.
func (b *bench) on(event, name string) *unstructured.Unstructured {
	return task(name, b.key("apply-on"), event)
}

// stage waits until the deletion waits for a task in a stage.
func (b *bench) stage(stage api.DeletionStage, task string) {
	b.t.Helper()
	if o := b.waiting(" hooks: waiting for Task " + b.namespace + "/" + task); o.Status.DeletionStage != stage {
		b.t.Errorf("stage %q, want %q", o.Status.DeletionStage, stage)
	}
}

// TestDeleteHooks: hooks run before and after dependents are deleted, and nothing is left.
func TestDeleteHooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why  string
		mode string
	}{
		"full":        {why: "the usual case"},
		"suspended":   {why: "a deletion is not suspended", mode: "suspended"},
		"detect-only": {why: "nor is it only looked at", mode: "detect-only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t).withTasks()
			b.create(configMap("plain", "1"), configMap("late", "1", b.key("delete-order"), "5"), b.on("pre-delete", "before"), b.on("post-delete", "after"))
			b.ready()
			b.absent(b.task("before"))
			if c.mode != "" {
				b.patch("bundles.trimtab.dev/v1", "Bundle", "a", `{"metadata":{"annotations":{"`+b.key("mode")+`":"`+c.mode+`"}}}`)
			}
			b.delete()
			b.stage(api.DeletionStagePreDelete, "before")
			b.live("plain")
			b.absent(b.task("after"))
			b.finish("before", true)
			b.stage(api.DeletionStagePostDelete, "after")
			b.absent(b.named("plain"))
			b.absent(b.named("late"))
			b.absent(b.task("before"))
			b.finish("after", true)
			b.gone()
			b.absent(b.task("after"))
			b.absent(b.secret("a-delete-hooks"))
		})
	}
}

func (b *bench) secret(name string) client.Object {
	s := &corev1.Secret{}
	s.Namespace, s.Name = b.namespace, name
	return s
}

// TestDeleteHookThatWasADependent: an object of the same name and content is not taken for the hook.
func TestDeleteHookThatWasADependent(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	recreate := []string{b.key("update-policy"), "recreate"}
	hook := b.on("pre-delete", "both")
	annotate(hook, recreate...)
	b.create(task("both", recreate...), hook)
	b.finish("both", true)
	b.ready()
	before := b.exists(b.task("both")).GetUID()
	b.delete()
	b.stage(api.DeletionStagePreDelete, "both")
	if now := b.exists(b.task("both")).GetUID(); now == before {
		t.Error("the dependent counts as the hook")
	}
	b.finish("both", true)
	b.gone()
}

// TestDeleteHooksOfOrphans: what stays as it is must not be cleaned up.
func TestDeleteHooksOfOrphans(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *options) { o.Policies.DeletePolicy = api.DeletePolicyOrphan }).withTasks()
	b.create(configMap("plain", "1"), b.on("pre-delete", "before"))
	b.ready()
	b.delete()
	b.gone()
	b.live("plain")
	b.absent(b.task("before"))
	b.absent(b.secret("a-delete-hooks"))
}

// TestDeleteHooksOfBlockedDeletion: nothing runs before everything may be deleted. An object of a kind that the component
// defines may be a hook.
func TestDeleteHooksOfBlockedDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	b.create(plain(b.baz()), b.bazOf("ours", b.key("apply-on"), "pre-delete"), b.on("pre-delete", "before"), b.on("post-delete", "after"))
	b.ready()
	foreign := b.put(b.bazOf("theirs"))
	b.delete()
	b.blocked(component.StateDeleting, "1 object of kind Baz ("+b.namespace+"/theirs)")
	b.absent(b.in(b.bazOf("ours")))
	b.drop(foreign)
	b.stage(api.DeletionStagePreDelete, "before")
	b.fence()
	b.stage(api.DeletionStagePreDelete, "before")
	b.finish("before", true)
	b.stage(api.DeletionStagePostDelete, "after")
	b.absent(b.crd())
	b.finish("after", true)
	b.gone()
}

// TestDeleteHooksOfLostInventory: no hook runs in the middle of a deletion that began without its inventory.
func TestDeleteHooksOfLostInventory(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *options) {
		o.Kinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, tasks().WithVersion("v1")}
	}).withTasks()
	b.create(configMap("plain", "1"), b.on("pre-delete", "before"))
	b.ready()
	b.stop()
	b.patch("v1", "ConfigMap", "plain", `{"metadata":{"finalizers":["tests.trimtab.dev/hold"]}}`)
	b.patchStatus(`{"status":null}`)
	b.delete()
	b.start()
	if o := b.waiting("ConfigMap " + b.namespace + "/plain"); o.Status.DeletionStage != api.DeletionStageRest {
		t.Errorf("stage %q", o.Status.DeletionStage)
	}
	b.patch("v1", "ConfigMap", "plain", `{"metadata":{"finalizers":null}}`)
	b.gone()
	b.absent(b.task("before"))
}

// TestDeleteHooksThatAreRefused: what would not run is refused when it is rendered.
func TestDeleteHooksThatAreRefused(t *testing.T) {
	t.Parallel()
	b := prepareBench(t).withTasks()
	b.options.Kinds = []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}}
	b.start()
	list := object("v1", "List", "", map[string]any{"items": []any{configMap("c", "1", b.key("apply-on"), "pre-delete")}})
	unstructured.RemoveNestedField(list.Object, "metadata")
	b.create(configMap("c", "1", b.key("apply-on"), "later"))
	b.failed(b.key("apply-on") + ` is "later"; it must be "pre-delete" or "post-delete"`)
	b.change(b.on("post-delete", "after"))
	b.failed("post-delete hooks: Task " + b.namespace + "/after: the operator is not allowed to touch objects of group")
	b.change(configMap("c", "1", b.key("apply-on"), "pre-delete", b.key("apply-order"), "x"))
	b.failed("pre-delete hooks: ", b.key("apply-order"))
	b.change(list)
	b.failed("annotation " + b.key("apply-on") + " is not possible in a list; return the object by itself")
}

// TestFunctionAsDeleteHook: what is no Kubernetes object cannot be stored.
func TestFunctionAsDeleteHook(t *testing.T) {
	t.Parallel()
	b := prepareBench(t)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (s component.Set, err error) {
		s.Do("f", "1", func(context.Context) error { return nil }).PostDelete()
		return s, nil
	})
	b.start()
	b.create()
	b.failed("Function f is no Kubernetes object, and cannot be a delete hook; remove the annotation " + b.key("apply-on"))
}

// TestNilBesideDeleteHook: a nil pointer is reported, not followed.
func TestNilBesideDeleteHook(t *testing.T) {
	t.Parallel()
	b := prepareBench(t)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		s := component.Objects((*corev1.ConfigMap)(nil))
		s.Add(configMap("c", "1")).PreDelete()
		return s, nil
	})
	b.start()
	b.create()
	b.failed("is nil; return no object instead")
}

// TestDeleteHookThatHangs: the status says how to go on without it, also when its time is over.
func TestDeleteHookThatHangs(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	hook := b.on("pre-delete", "before")
	annotate(hook, b.key("timeout"), "1s")
	b.create(configMap("plain", "1"), hook)
	b.ready()
	b.delete()
	wayOut := "; to go on without hooks, set " + b.key("skip-delete-hooks") + `: "true" on the component`
	b.await("late", func(o *bundle.Bundle) bool {
		return o.Status.State == component.StateDeleting && reasonOf(o) == "Timeout" &&
			containsAll(o.Status.Message, []string{"pre-delete hooks: Task " + b.namespace + "/before is not ready after 1s: it ", wayOut})
	})
	b.finish("before", true)
	b.gone()
}

// TestDeleteHooksOfForeignSecret: hooks whose Secret lost its owner are not skipped.
func TestDeleteHooksOfForeignSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t).withTasks()
	b.create(configMap("plain", "1"), b.on("pre-delete", "before"))
	b.ready()
	b.stop()
	secret := &corev1.Secret{}
	if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(b.secret("a-delete-hooks")), secret); err != nil {
		t.Fatal(err)
	}
	owner := secret.Annotations[b.key("owner-id")]
	patch := func(value string) {
		t.Helper()
		b.patch("v1", "Secret", "a-delete-hooks", `{"metadata":{"annotations":{"`+b.key("owner-id")+`":`+value+`}}}`)
	}
	patch("null")
	b.delete()
	b.start()
	b.blocked(component.StateDeleting, "set its annotation "+b.key("owner-id")+` back to "`+owner+`"`, b.key("skip-delete-hooks"))
	b.live("plain")
	patch(`"` + owner + `"`)
	b.stop()
	b.start()
	b.stage(api.DeletionStagePreDelete, "before")
	b.finish("before", true)
	b.gone()
	b.absent(b.secret("a-delete-hooks"))
}
