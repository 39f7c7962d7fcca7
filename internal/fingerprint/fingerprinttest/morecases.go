package fingerprinttest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clients are further ways in which clients write.
func clients() []Case {
	return []Case{
		{Name: "a JSON patch replaces a value", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			path := "/" + strings.Join(o.Kind.scalar, "/")
			return o.raw(ctx, types.JSONPatchType, []operation{{"replace", path, o.Kind.other}})
		}},
		{Name: "a strategic merge patch edits an item", Kinds: on("Deployment"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.strategic(ctx, map[string]any{"name": "web", "image": "example.org/web:2"})
		}},
		{Name: "a strategic merge patch adds an item", Kinds: on("Deployment"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.strategic(ctx, o.Kind.newItem)
		}},
		{Name: "an update changes nothing", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.put(ctx, them)
		}},
		{Name: "an update drops a value", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.put(ctx, them, remove(o.Kind.scalar...))
		}},
		{Name: "an update without managedFields changes nothing", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.put(ctx, them, remove("metadata", "managedFields"))
		}},
		{Name: "an update carries managedFields and another value", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.put(ctx, them, set(o.Kind.other, o.Kind.scalar...))
		}},
		{Name: "twelve managers write", Kinds: on("ConfigMap"), Want: Same, Do: twelve},
		{Name: "a dry run edits a value", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return client.NewDryRunClient(o.Client).Patch(ctx, o.Kind.bare(o.Namespace, o.Name),
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"ours":"2"}}}`)), client.FieldOwner(them))
		}},
		{Name: "another applies the same value and drops it", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			if err := o.applyOnly(ctx, set(o.Kind.ours, o.Kind.scalar...)); err != nil {
				return err
			}
			return o.applyOnly(ctx, set("x", "metadata", "labels", "theirs"))
		}},
		{Name: "a finalizer comes and goes", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			if err := o.merge(ctx, them, set([]any{"example.org/theirs"}, "metadata", "finalizers")); err != nil {
				return err
			}
			return o.merge(ctx, them, remove("metadata", "finalizers"))
		}},
		{Name: "the status is patched", Kinds: on("Deployment", "Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.Client.Status().Patch(ctx, o.Kind.bare(o.Namespace, o.Name),
				client.RawPatch(types.MergePatchType, o.statusPatch()), client.FieldOwner(them))
		}},
		{Name: "the status is patched under our name", Kinds: on("Deployment", "Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.Client.Status().Patch(ctx, o.Kind.bare(o.Namespace, o.Name),
				client.RawPatch(types.MergePatchType, o.statusPatch()), client.FieldOwner(o.Manager))
		}},
		{Name: "the status is applied under our name", Kinds: on("Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			u := o.Kind.bare(o.Namespace, o.Name)
			set("ready", "status", "phase")(u.Object)
			return o.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(o.Manager))
		}},
		{Name: "scaled", Kinds: on("Deployment"), Want: Drift, Do: scale},
	}
}

func (o Object) statusPatch() []byte {
	if o.Kind.Name == "Gadget" {
		return []byte(`{"status":{"phase":"ready"}}`)
	}
	return []byte(`{"status":{"conditions":[{"type":"Theirs","status":"True"}]}}`)
}

func (o Object) strategic(ctx context.Context, container map[string]any) error {
	return o.raw(ctx, types.StrategicMergePatchType, map[string]any{"spec": map[string]any{
		"template": map[string]any{"spec": map[string]any{"containers": []any{container}}},
	}})
}

func scale(ctx context.Context, o Object) error {
	u := o.Kind.bare(o.Namespace, o.Name)
	return o.Client.SubResource("scale").Patch(ctx, u,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)), client.FieldOwner(them))
}

// recreations are other objects of the same name.
func recreations() []Case {
	names := on("ConfigMap", "Secret", "Gadget")
	return []Case{
		{Name: "deleted and created by another", Kinds: names, Want: Own, Recreates: true, Do: func(ctx context.Context, o Object) error {
			return o.recreate(ctx, false)
		}},
		{Name: "deleted and created with managedFields and another value", Kinds: names, Want: Drift, Recreates: true, Do: func(ctx context.Context, o Object) error {
			return o.recreate(ctx, true, set(o.Kind.other, o.Kind.scalar...))
		}},
		{Name: "deleted, created with another value, managedFields written back", Kinds: names, Want: Drift, Recreates: true, Do: func(ctx context.Context, o Object) error {
			old, err := o.Get(ctx)
			if err != nil {
				return err
			}
			if err := o.recreate(ctx, false, set(o.Kind.other, o.Kind.scalar...)); err != nil {
				return err
			}
			return o.writeBack(ctx, old)
		}},
	}
}

// restores are changes that leave the manager's entry as it was, or nearly so.
func restores() []Case {
	return []Case{
		{Name: "edited, and the old managedFields written back", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			old, err := o.Get(ctx)
			if err != nil {
				return err
			}
			if err := o.editScalar(ctx); err != nil {
				return err
			}
			return o.writeBack(ctx, old)
		}},
		{Name: "an item edited, and the old managedFields written back", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			old, err := o.Get(ctx)
			if err != nil {
				return err
			}
			if err := o.merge(ctx, them, editFirst(o.Kind.items, o.Kind.itemField, o.Kind.itemOther)); err != nil {
				return err
			}
			return o.writeBack(ctx, old)
		}},
		{Name: "a keyed list reordered", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, reverse(o.Kind.items))
		}},
	}
}

// lists are changes of lists and maps of each sort.
func lists() []Case {
	return []Case{
		{Name: "an unowned item inserted before ours", Kinds: keyed(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, insertItem(o.Kind.newItem, o.Kind.items))
		}},
		{Name: "an atomic map gets a key", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set("x", append(slices.Clone(o.Kind.wholeMap), "theirs")...))
		}},
		{Name: "a set gets a value", Kinds: on("Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, appendItem("theirs", []string{"spec", "tags"}))
		}},
		{Name: "a set loses our value", Kinds: on("Gadget"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, dropLast([]string{"spec", "tags"}))
		}},
		{Name: "an atomic list reordered", Kinds: on("Gadget"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, reverse(o.Kind.atomic))
		}},
		{Name: "our empty map gets a key", Kinds: on("Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set("x", "spec", "open", "theirs"))
		}},
		{Name: "our empty atomic map gets a key", Kinds: on("Gadget"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set("x", "spec", "noneFixed", "theirs"))
		}},
		{Name: "our emptyDir gets a limit", Kinds: on("Deployment"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, volume(map[string]any{"emptyDir": map[string]any{"sizeLimit": "1Gi"}}))
		}},
		{Name: "our emptyDir becomes a hostPath", Kinds: on("Deployment"), Want: Drift, Refused: true, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, volume(map[string]any{"hostPath": map[string]any{"path": "/tmp"}}))
		}},
		{Name: "a variable is there twice", Kinds: on("Deployment"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, container(func(c map[string]any) {
				variables, _ := c["env"].([]any)
				c["env"] = append(variables, map[string]any{"name": "A", "value": "2"})
			}))
		}},
	}
}

// values are changes of how a value is written or where it comes from.
func values() []Case {
	return []Case{
		{Name: "a quantity in another notation", Kinds: on("Deployment"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, container(func(c map[string]any) {
				c["resources"] = map[string]any{"limits": map[string]any{"cpu": "0.5"}}
			}))
		}},
		{Name: "a value deleted whose default is equal", Kinds: on("Gadget"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, remove("spec", "mode"))
		}},
		{Name: "a Secret written in plain text", Kinds: on("Secret"), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.raw(ctx, types.MergePatchType, map[string]any{"stringData": map[string]any{"a": "two"}})
		}},
	}
}

// special are changes of the metadata that others make in the normal run of things.
func special() []Case {
	return []Case{
		{Name: "an owner is added", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			owner := &unstructured.Unstructured{}
			owner.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
			if err := o.Client.Get(ctx, client.ObjectKey{Name: o.Namespace}, owner); err != nil {
				return err
			}
			return o.merge(ctx, them, set([]any{map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "name": owner.GetName(), "uid": string(owner.GetUID()),
			}}, "metadata", "ownerReferences"))
		}},
		{Name: "restarted", Kinds: on("Deployment"), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.raw(ctx, types.StrategicMergePatchType, map[string]any{"spec": map[string]any{"template": map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "now"}},
			}}})
		}},
	}
}

func volume(source map[string]any) change {
	return list([]string{"spec", "template", "spec", "volumes"}, func([]any) []any {
		v := map[string]any{"name": "scratch"}
		maps.Copy(v, source)
		return []any{v}
	})
}

func container(f func(map[string]any)) change {
	return func(object map[string]any) {
		containers, _, err := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		if err != nil {
			panic(err)
		}
		f(containers[0].(map[string]any))
		set(containers, "spec", "template", "spec", "containers")(object)
	}
}
