package scenarios

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/test/fault/cloudfake"
)

// Nodes returns the scenario of a component with an external resource among its dependents: it comes,
// changes, is pruned, comes again, and goes with the component.
func Nodes() []fault.Scenario {
	a := &bundle.Bundle{ObjectMeta: named("a", nil)}
	one := configMapOf("one", "1")
	a.Spec.Objects = append(a.Spec.Objects, one, itemOf("db", 1))
	steps := []fault.Step{
		fault.Create(a).Becomes(a, api.ConditionReady).Expecting(configMaps("one=1")).Expecting(cloudHas("db size 1, marked")),
		fault.Merge(a, objects(one, itemOf("db", 2))).Becomes(a, api.ConditionReady).Expecting(cloudHas("db size 2, marked")),
		fault.Merge(a, objects(one)).Becomes(a, api.ConditionReady).Expecting(configMaps("one=1")).Expecting(cloudHas()),
		fault.Merge(a, objects(one, itemOf("db", 3))).Becomes(a, api.ConditionReady).Expecting(cloudHas("db size 3, marked")),
		fault.Delete(a).Gone(a).Expecting(configMaps()).Expecting(cloudHas()),
	}
	s := bundleScenario("component-external", bundlesWith(withItems), steps, "get configmaps", "update configmaps")
	s.ExternalAPI = func() fault.ExternalAPI {
		c := cloudfake.New()
		c.BelongTo("default/a")
		return c
	}
	s.Patience, s.Lag, s.Reads = 15*time.Minute, behind, 21
	return []fault.Scenario{s}
}

// withItems adds items of the cloud.
func withItems(env *fault.Env, o *component.Options[*bundle.Bundle]) {
	o.Scheme = &runtime.SchemeBuilder{thing.AddToScheme}
	o.Drivers = []node.Driver{external.Nodes(items{env: env}, external.Options[*thing.Thing, *cloudClient]{
		Connect:     func(context.Context) (*cloudClient, error) { return newCloudClient(env), nil },
		CreateGrace: time.Second, UniqueNames: true,
	})}
}

// itemOf is the manifest of an item.
func itemOf(name string, size int) runtime.RawExtension {
	raw, err := json.Marshal(&thing.Thing{
		TypeMeta:   metav1.TypeMeta{APIVersion: thing.GroupVersion.String(), Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: thing.Spec{Size: size},
	})
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}
