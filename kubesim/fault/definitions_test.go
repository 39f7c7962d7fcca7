package fault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// definition is a CRD in YAML.
func definition(plural, kind string) string {
	return `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + plural + `.example.com
  labels: {contract: v1}
spec:
  group: example.com
  names: {plural: ` + plural + `, singular: ` + strings.ToLower(kind) + `, kind: ` + kind + `}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
}

func custom(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": kind}}
	u.SetName(name)
	return u
}

func definitionOf(plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"}}
}

// TestDefinitionsAreObjects proves that operators see the CRDs that they are installed with: some wait until
// theirs is established, others read labels of it through their cache.
func TestDefinitionsAreObjects(t *testing.T) {
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "labels", Steps: []Step{Create(a).Expecting(func(ctx context.Context, w *World) error {
			cm := &corev1.ConfigMap{}
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(configMap("a")), cm); err != nil || cm.Annotations["contract"] == "v1" {
				return err
			}
			return errors.New("the label of the CRD was not found")
		})},
		Operator: Operator{
			CRDs: Manifests(definition("gems", "Gem")), AddToScheme: apiextensionsv1.AddToScheme,
			SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
				crd := definitionOf("gems")
				if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
					return 0, err
				}
				established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
				})
				if !established || cm.Annotations["contract"] == crd.Labels["contract"] {
					return 0, nil
				}
				metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "contract", crd.Labels["contract"])
				return 0, c.Update(ctx, cm)
			}),
		},
	})
	for _, text := range r.texts() {
		t.Error(text)
	}
	if r.Schedules[Crashes] == 0 {
		t.Error("nothing was played")
	}
}

// TestDefinitionsStay proves that a CRD which a step creates or changes takes none of the others away.
func TestDefinitionsStay(t *testing.T) {
	gems := definitionOf("gems")
	for name, steps := range map[string][]Step{
		"another is created": {CreateYAML(definition("stones", "Stone")), Create(custom("Gem", "red"))},
		"one is changed":     {Merge(gems, `{"metadata":{"labels":{"contract":"v2"}}}`), Create(custom("Gem", "red"))},
		"one is deleted": {
			Create(custom("Gem", "red")).Named("first"), Create(custom("Jewel", "old")), Delete(gems).Gone(custom("Gem", "red")),
			Merge(custom("Jewel", "old"), `{"metadata":{"labels":{"a":"b"}}}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: "stay", Steps: steps, Races: []Step{},
				Operator: Operator{
					CRDs: Manifests(definition("gems", "Gem") + definition("jewels", "Jewel")), AddToScheme: apiextensionsv1.AddToScheme,
					SetUp: does(func(context.Context, client.Client, *corev1.ConfigMap) (time.Duration, error) { return 0, nil }),
				},
			})
			for _, text := range r.texts() {
				t.Error(text)
			}
		})
	}
}

// TestDefinitionsAreCompared proves that a CRD which the operator should have changed or deleted, and did not after
// a crash, is found, and that the finding says what is wrong with it.
func TestDefinitionsAreCompared(t *testing.T) {
	tests := map[string]struct {
		act  func(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error
		want string
	}{
		"changed": {func(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
			return c.Patch(ctx, crd, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"contract":"v2"}}}`)))
		}, `metadata.labels.contract of CustomResourceDefinition gems.example.com is "v1", "v2" without the disturbance`},
		"deleted": {func(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
			return client.IgnoreNotFound(c.Delete(ctx, crd))
		}, `CustomResourceDefinition gems.example.com exists, which it does not without the disturbance`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, Scenario{
				Name: name, Steps: []Step{Create(configMap("a"))}, Races: []Step{},
				Operator: Operator{
					CRDs: Manifests(definition("gems", "Gem")), AddToScheme: apiextensionsv1.AddToScheme,
					SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
						if cm.Annotations["done"] != "" {
							return 0, nil
						}
						metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "done", "yes") // too early
						if err := c.Update(ctx, cm); err != nil {
							return 0, err
						}
						return 0, test.act(ctx, c, definitionOf("gems"))
					}),
				},
			}, Only(Crashes))
			if texts := r.texts(); len(texts) != 1 || !strings.HasPrefix(strings.Join(strings.Fields(texts[0]), " "), test.want) {
				t.Errorf("want one finding that begins with %q, got %q", test.want, texts)
			}
		})
	}
}
