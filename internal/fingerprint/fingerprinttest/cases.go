package fingerprinttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Want is what has to be made of a change.
type Want string

const (
	// Same is a change that leaves what was applied and who owns it.
	Same Want = "same"
	// Drift is a change of an applied value.
	Drift Want = "drift"
	// Own is a change after which the values are as applied, but no longer owned.
	Own Want = "own"
)

// Case is one change of an applied object.
type Case struct {
	// Name says what is done.
	Name string
	// Kinds are the names of the kinds it is done to.
	Kinds []string
	// Want is what has to be made of it.
	Want Want
	// Recreates says that another object takes the name.
	Recreates bool
	// Refused says that the API server refuses to apply the manifest on top.
	Refused bool
	// Do does it.
	Do func(ctx context.Context, o Object) error
}

// Object is an object that was applied.
type Object struct {
	Client client.Client
	Kind   Kind
	// Manager applied the object.
	Manager         string
	Namespace, Name string
	// Labels and Annotations are what the manager applies in addition to the manifest.
	Labels, Annotations map[string]string
}

// Get reads the object.
func (o Object) Get(ctx context.Context) (*unstructured.Unstructured, error) {
	u := o.Kind.bare(o.Namespace, o.Name)
	return u, o.Client.Get(ctx, client.ObjectKeyFromObject(u), u)
}

// Apply applies an object by force.
func Apply(ctx context.Context, c client.Client, manager string, u *unstructured.Unstructured, opts ...client.ApplyOption) error {
	opts = append(opts, client.FieldOwner(manager), client.ForceOwnership)
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), opts...)
}

// them is the field manager of the others.
const them = "them"

// merge changes the object by a merge patch.
func (o Object) merge(ctx context.Context, manager string, changes ...change) error {
	live, err := o.Get(ctx)
	if err != nil {
		return err
	}
	before := live.DeepCopy()
	for _, c := range changes {
		c(live.Object)
	}
	return o.Client.Patch(ctx, live, client.MergeFrom(before), client.FieldOwner(manager))
}

// put changes the object by an update. Controllers write to it as well, so that an update may have
// to be done again.
func (o Object) put(ctx context.Context, manager string, changes ...change) error {
	for {
		live, err := o.Get(ctx)
		if err != nil {
			return err
		}
		for _, c := range changes {
			c(live.Object)
		}
		err = o.Client.Update(ctx, live, client.FieldOwner(manager))
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (o Object) apply(ctx context.Context, manager string, changes ...change) error {
	u := o.Kind.with(o.Namespace, o.Name, changes...)
	u.SetLabels(merged(u.GetLabels(), o.Labels))
	u.SetAnnotations(merged(u.GetAnnotations(), o.Annotations))
	return Apply(ctx, o.Client, manager, u)
}

func merged(a, b map[string]string) map[string]string {
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// applyOnly applies nothing but the changes, as another manager.
func (o Object) applyOnly(ctx context.Context, changes ...change) error {
	u := o.Kind.bare(o.Namespace, o.Name)
	for _, c := range changes {
		c(u.Object)
	}
	return Apply(ctx, o.Client, them, u)
}

// raw sends a patch as it is.
func (o Object) raw(ctx context.Context, kind types.PatchType, patch any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	u := o.Kind.bare(o.Namespace, o.Name)
	return o.Client.Patch(ctx, u, client.RawPatch(kind, data), client.FieldOwner(them))
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// writeBack replaces managedFields by those of an object.
func (o Object) writeBack(ctx context.Context, old *unstructured.Unstructured) error {
	fields, _, err := unstructured.NestedSlice(old.Object, "metadata", "managedFields")
	if err != nil {
		return err
	}
	return o.raw(ctx, types.JSONPatchType, []operation{{"replace", "/metadata/managedFields", fields}})
}

// recreate deletes the object and creates another, which may carry the managedFields of the first.
func (o Object) recreate(ctx context.Context, carry bool, changes ...change) error {
	old, err := o.Get(ctx)
	if err != nil {
		return err
	}
	if err := o.Client.Delete(ctx, old); err != nil {
		return err
	}
	u := o.Kind.with(o.Namespace, o.Name, changes...)
	if carry {
		u.SetManagedFields(old.GetManagedFields())
	}
	return o.Client.Create(ctx, u, client.FieldOwner(them))
}

func (o Object) editScalar(ctx context.Context) error {
	return o.merge(ctx, them, set(o.Kind.other, o.Kind.scalar...))
}

func all() []string { return []string{"Deployment", "ConfigMap", "Service", "Secret", "Gadget"} }

func keyed() []string { return []string{"Deployment", "Service", "Gadget"} }

func on(kinds ...string) []string { return kinds }

// Cases returns all cases. The first are the sixteen of the specification of drift.
func Cases() []Case {
	var cases []Case
	for _, part := range [][]Case{basicSame(), basicDrift(), clients(), recreations(), restores(), lists(), values(), special()} {
		cases = append(cases, part...)
	}
	return cases
}

func basicSame() []Case {
	return []Case{
		{Name: "01 the same applied again", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.apply(ctx, o.Manager)
		}},
		{Name: "02 another adds an unowned field", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set(o.Kind.unownedValue, o.Kind.unowned...))
		}},
		{Name: "03 another adds an item to a keyed list", Kinds: keyed(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, appendItem(o.Kind.newItem, o.Kind.items))
		}},
		{Name: "04 another adds a label", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set("x", "metadata", "labels", "theirs"))
		}},
		{Name: "05 another applies the same value", Kinds: all(), Want: Same, Do: func(ctx context.Context, o Object) error {
			return o.applyOnly(ctx, set(o.Kind.ours, o.Kind.scalar...))
		}},
	}
}

func basicDrift() []Case {
	return []Case{
		{Name: "06 another edits a value", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.editScalar(ctx)
		}},
		{Name: "07 another deletes a value", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, remove(o.Kind.scalar...))
		}},
		{Name: "08 another edits a label", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, set("2", "metadata", "labels", "ours"))
		}},
		{Name: "09 another deletes an annotation", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, remove("metadata", "annotations", "example.org/ours"))
		}},
		{Name: "10 another edits an item of a keyed list", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, editFirst(o.Kind.items, o.Kind.itemField, o.Kind.itemOther))
		}},
		{Name: "10 another removes an item of a keyed list", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, dropLast(o.Kind.items))
		}},
		{Name: "11 another appends to an atomic list", Kinds: keyed(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.merge(ctx, them, appendItem(o.Kind.atomicItem, o.Kind.atomic))
		}},
		{Name: "12 another applies by force", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.applyOnly(ctx, set(o.Kind.other, o.Kind.scalar...))
		}},
		{Name: "13 an update under our name", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.put(ctx, o.Manager, set(o.Kind.other, o.Kind.scalar...))
		}},
		{Name: "14 another manifest applied under our name", Kinds: all(), Want: Drift, Do: func(ctx context.Context, o Object) error {
			return o.apply(ctx, o.Manager, set(o.Kind.other, o.Kind.scalar...))
		}},
		{Name: "15 managedFields reset", Kinds: all(), Want: Own, Do: func(ctx context.Context, o Object) error {
			return o.raw(ctx, types.JSONPatchType, []operation{{"replace", "/metadata/managedFields", []any{map[string]any{}}}})
		}},
		{Name: "16 another edits a value and reverts it", Kinds: all(), Want: Own, Do: func(ctx context.Context, o Object) error {
			if err := o.editScalar(ctx); err != nil {
				return err
			}
			return o.merge(ctx, them, set(o.Kind.ours, o.Kind.scalar...))
		}},
	}
}

// twelve writes once under each of twelve names, of which the API server keeps ten.
func twelve(ctx context.Context, o Object) error {
	for i := range 12 {
		manager := fmt.Sprintf("them-%d", i)
		if err := o.merge(ctx, manager, set("x", "metadata", "annotations", "example.org/"+manager)); err != nil {
			return err
		}
	}
	return nil
}
