package scenarios

import (
	"context"
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
	changed := objects(dependents("one=2@0", "three=1@1", "four=1@1")...)
	life := []fault.Step{
		fault.Create(b).Becomes(b, api.ConditionReady).Expecting(configMaps("one=1", "three=1", "two=1")),
		fault.Merge(b, changed).Becomes(b, api.ConditionReady).Expecting(configMaps("four=1", "one=2", "three=1")),
		{Name: "somebody edits one", Do: editConfigMap("one"), Expect: configMaps("four=1", "one=2", "three=1")},
		{Name: "somebody deletes three", Do: deleteConfigMap("three"), Expect: configMaps("four=1", "one=2", "three=1")},
		fault.Delete(b).Gone(b).Expecting(configMaps()),
	}
	return []fault.Scenario{
		bundleScenario("component-life", bundlesWith(nil), life, "get configmaps", "update configmaps"), componentUndone(),
	}
}

// bundleScenario is a scenario of an operator of Bundles. unused are permissions that it has and does not use.
func bundleScenario(name string, options func(*fault.Env) operator.Options, steps []fault.Step, unused ...string) fault.Scenario {
	unused = append([]string{"get bundles.bundles.trimtab.dev", "list bundles.bundles.trimtab.dev"}, unused...)
	return fault.Scenario{Name: name, Operator: componentProcess(options, unused...), Steps: steps, Foreign: sometimes()}
}

// componentUndone is a component of which a user undoes the last change.
func componentUndone() fault.Scenario {
	b := &bundle.Bundle{ObjectMeta: named("a", nil)}
	b.Spec.Objects = dependents("one=1@0")
	before, after := objects(b.Spec.Objects...), objects(dependents("one=1@0", "two=1@0")...)
	steps := []fault.Step{
		fault.Create(b).Becomes(b, api.ConditionReady).Expecting(configMaps("one=1")),
		fault.Merge(b, after).Becomes(b, api.ConditionReady).Expecting(configMaps("one=1", "two=1")),
		fault.Delete(b).Gone(b).Expecting(configMaps()),
	}
	return racing(bundleScenario("component-undone", bundlesWith(nil), steps, "get configmaps", "update configmaps"), fault.Merge(b, before))
}

// sometimes are fields of a component's status that may differ at rest. The repair of a dependent changes
// its fingerprint and its UID, and is not worth a write of the status: they are as they were when the status
// was last written for another reason. The revision counts the changes that the operator saw: two of a user
// may be one to it.
func sometimes() []string {
	return []string{"status.inventory.fingerprint", "status.inventory.uid", "status.revision"}
}

// componentProcess is an operator of components. It reads dependents that others wrote to while it was away,
// and creates namespaces, which no scenario here is about. unused are further permissions of that kind.
func componentProcess(options func(*fault.Env) operator.Options, unused ...string) fault.Operator {
	o := simulated(options)
	o.Justified = append(o.Justified, "list configmaps", "create namespaces")
	o.Justified = append(o.Justified, unused...)
	return o
}

// renderBundle is the renderer, which comes to the point at which it can panic or hang.
func renderBundle(env *fault.Env) component.RenderFunc[*bundle.Bundle] {
	return func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		env.Author("Render")
		objects, err := r.Component.Render()
		return component.Objects(objects...), err
	}
}

// bundlesWith is an operator of Bundles, which have ConfigMaps. change is called with the options of its
// controller; nil changes nothing.
func bundlesWith(change func(*fault.Env, *component.Options[*bundle.Bundle])) func(*fault.Env) operator.Options {
	return func(env *fault.Env) operator.Options {
		return operator.Options{
			Name: "bundles", AddToScheme: bundle.AddToScheme, CRDs: bundle.CRDs,
			Controllers: func() ([]operator.Controller, error) {
				o := component.Options[*bundle.Bundle]{
					Name: bundles, HandoverGrace: -1, Kinds: []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap")},
				}
				if change != nil {
					change(env, &o)
				}
				return []operator.Controller{component.New(renderBundle(env), o)}, nil
			},
		}
	}
}

// dependents are ConfigMaps of a Bundle, each as name=value@wave.
func dependents(list ...string) []runtime.RawExtension { return dependentsOf(bundles, list...) }

func dependentsOf(operator string, list ...string) []runtime.RawExtension {
	var out []runtime.RawExtension
	for _, d := range list {
		name, rest, _ := strings.Cut(d, "=")
		value, wave, _ := strings.Cut(rest, "@")
		out = append(out, runtime.RawExtension{Raw: []byte(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"annotations":{%q:%q}},"data":{"value":%q}}`,
			name, operator+"/apply-order", wave, value))})
	}
	return out
}

// configMaps expects ConfigMaps, each as name=value, and no others of the operator of Bundles.
func configMaps(want ...string) func(context.Context, *fault.World) error {
	return configMapsOf(bundles, want...)
}

func configMapsOf(operator string, want ...string) func(context.Context, *fault.World) error {
	return func(ctx context.Context, w *fault.World) error {
		var list corev1.ConfigMapList
		if err := w.Client.List(ctx, &list, client.HasLabels{operator + "/owner-id"}); err != nil {
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
