package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
)

// bundles is the name of the operator of Bundles.
const bundles = "bundles.trimtab.dev"

// Component returns the scenarios of an operator of components, whose dependents are ConfigMaps in two
// waves.
func Component() []fault.Scenario {
	b := &bundle.Bundle{ObjectMeta: named("a", nil)}
	b.Spec.Objects = dependents("one=1@0", "two=1@0", "three=1@1")
	changed, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": dependents("one=2@0", "three=1@1", "four=1@1")}})
	if err != nil {
		panic(err)
	}
	life := []fault.Step{
		fault.Create(b).Becomes(b, api.ConditionReady).Expecting(configMaps("one=1", "three=1", "two=1")),
		fault.Merge(b, string(changed)).Becomes(b, api.ConditionReady).Expecting(configMaps("four=1", "one=2", "three=1")),
		{Name: "somebody edits one", Do: editConfigMap("one"), Expect: configMaps("four=1", "one=2", "three=1")},
		{Name: "somebody deletes three", Do: deleteConfigMap("three"), Expect: configMaps("four=1", "one=2", "three=1")},
		fault.Delete(b).Gone(b).Expecting(configMaps()),
	}
	return []fault.Scenario{{
		Name: "component-life", Operator: bundleProcess(), Steps: life,
		// The repair of a dependent changes both, and is not worth a write of the status: they are as they
		// were when the status was last written for another reason.
		// The revision counts the changes that the operator saw: two of a user may be one to it.
		Foreign: []string{"status.inventory.fingerprint", "status.inventory.uid", "status.revision"},
	}}
}

// bundleProcess is the operator. It reads dependents that others wrote to while it was away, and
// replaces those whose policy says so: no story here is about either.
func bundleProcess() fault.Operator {
	o := simulated(bundleOperator)
	o.Justified = append(o.Justified, "get bundles.bundles.trimtab.dev", "list bundles.bundles.trimtab.dev",
		"get configmaps", "list configmaps", "update configmaps", "create namespaces")
	return o
}

func bundleOperator(env *fault.Env) operator.Options {
	render := func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		env.Author("Render")
		objects, err := r.Component.Render()
		return component.Objects(objects...), err
	}
	return operator.Options{
		Name: "bundles", AddToScheme: bundle.AddToScheme, CRDs: bundle.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{component.New(component.RenderFunc[*bundle.Bundle](render), component.Options[*bundle.Bundle]{
				Name: bundles, Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
			})}, nil
		},
	}
}

// dependents are ConfigMaps, each as name=value@wave.
func dependents(list ...string) []runtime.RawExtension {
	var out []runtime.RawExtension
	for _, d := range list {
		name, rest, _ := strings.Cut(d, "=")
		value, wave, _ := strings.Cut(rest, "@")
		out = append(out, runtime.RawExtension{Raw: []byte(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"annotations":{%q:%q}},"data":{"value":%q}}`,
			name, bundles+"/apply-order", wave, value))})
	}
	return out
}

// configMaps expects ConfigMaps, each as name=value, and no others of the operator.
func configMaps(want ...string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var list corev1.ConfigMapList
		if err := w.Client.List(ctx, &list, client.HasLabels{bundles + "/owner-id"}); err != nil {
			return err
		}
		var got []string
		for _, m := range list.Items {
			got = append(got, m.Name+"="+m.Data["value"])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("the ConfigMaps are %q, want %q", got, want)
		}
		return nil
	}
}

func editConfigMap(name string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		m := &corev1.ConfigMap{ObjectMeta: named(name, nil)}
		m.Namespace = "default"
		return w.Client.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"edited"}}`)))
	}
}

func deleteConfigMap(name string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		m := &corev1.ConfigMap{ObjectMeta: named(name, nil)}
		m.Namespace = "default"
		return w.Client.Delete(ctx, m)
	}
}
