package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lampV1 is an old version of a lamp, which knows no brightness. lampV2 is the version that is stored.
type (
	lampV1 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Colour string `json:"colour,omitempty"`
	}
	lampV2 struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`

		Color      string `json:"color,omitempty"`
		Brightness int64  `json:"brightness,omitempty"`
	}
)

func (l *lampV1) DeepCopyObject() runtime.Object {
	c := *l
	c.ObjectMeta = *l.DeepCopy()
	return &c
}

func (l *lampV2) DeepCopyObject() runtime.Object {
	c := *l
	c.ObjectMeta = *l.DeepCopy()
	return &c
}

// lampList are lamps of one version.
type lampList[T any] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

func (l *lampList[T]) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items) // nobody changes what they share
	return &c
}

// Hub marks the version that all others are converted to.
func (*lampV2) Hub() {}

const brightness = "lamps.example.com/brightness"

// ConvertTo makes a new lamp of an old one.
func (l *lampV1) ConvertTo(to conversion.Hub) error {
	h := to.(*lampV2)
	h.ObjectMeta, h.Color = *l.DeepCopy(), l.Colour
	if kept := l.Annotations[brightness]; kept != "" {
		if _, err := fmt.Sscan(kept, &h.Brightness); err != nil {
			return err
		}
		delete(h.Annotations, brightness)
	}
	return nil
}

// forgetful is a lamp whose converter keeps no brightness.
const forgetful = "forgetful"

// ConvertFrom makes an old lamp of a new one.
func (l *lampV1) ConvertFrom(from conversion.Hub) error {
	h := from.(*lampV2)
	l.ObjectMeta, l.Colour = *h.DeepCopy(), h.Color
	if l.Name != forgetful {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, brightness, fmt.Sprint(h.Brightness))
	}
	return nil
}

const lampCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, listKind: LampList}
  CONVERSION
  versions:
  - name: v1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {colour: {type: string}}}}
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {color: {type: string}, brightness: {type: integer}}}}
`

const byWebhook = `conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {caBundle: "", service: {namespace: system, name: webhook-service, path: /convert}}}}`

// lamps is an operator that paints lamps by their old version, and whose scenario is about one lamp.
func lamps(name, conversion string) Scenario {
	v1, v2 := schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v2"}
	lamp := &lampV2{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Brightness: 7}
	return Scenario{
		Name: "lamps",
		Operator: Operator{
			CRDs: Manifests(strings.ReplaceAll(lampCRD, "CONVERSION", conversion)),
			AddToScheme: func(s *runtime.Scheme) error {
				s.AddKnownTypeWithName(v1.WithKind("Lamp"), &lampV1{})
				s.AddKnownTypeWithName(v2.WithKind("Lamp"), &lampV2{})
				s.AddKnownTypeWithName(v1.WithKind("LampList"), &lampList[lampV1]{})
				s.AddKnownTypeWithName(v2.WithKind("LampList"), &lampList[lampV2]{})
				metav1.AddToGroupVersion(s, v1)
				metav1.AddToGroupVersion(s, v2)
				return nil
			},
			SetUp: func(mgr ctrl.Manager, _ *Env) error {
				c := mgr.GetClient()
				paint := func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
					l := &lampV1{}
					if err := c.Get(ctx, req.NamespacedName, l); err != nil || l.Colour == "green" {
						return reconcile.Result{}, client.IgnoreNotFound(err)
					}
					l.Colour = "green"
					return reconcile.Result{}, c.Update(ctx, l)
				}
				return errors.Join(
					ctrl.NewWebhookManagedBy(mgr, &lampV2{}).Complete(),
					ctrl.NewControllerManagedBy(mgr).Named("lamps").For(&lampV1{}).Complete(reconcile.Func(paint)),
				)
			},
		},
		Steps: []Step{Create(lamp).Expecting(func(ctx context.Context, w *World) error {
			got := &lampV2{}
			if err := w.Client.Get(ctx, client.ObjectKeyFromObject(lamp), got); err != nil {
				return err
			}
			if got.Color != "green" || got.Brightness != 7 {
				return fmt.Errorf("the lamp is %s and %d bright", got.Color, got.Brightness)
			}
			return nil
		})},
	}
}

// The operator's converter converts what it reads and writes in another version than the one that is stored,
// also if that is for kustomize to say. One that loses a field is seen.
func TestConverter(t *testing.T) {
	for _, c := range []struct{ why, name, conversion, want string }{
		{"named by the CRD", "kept", byWebhook, ""},
		{"not named", "kept", "", ""},
		{"it loses a field", forgetful, byWebhook, "the lamp is green and 0 bright"},
	} {
		r, err := explored(t, lamps(c.name, c.conversion), time.Minute)
		if got := fmt.Sprint(err); c.want != "" && !strings.Contains(got, c.want) || c.want == "" && err != nil {
			t.Errorf("%s: %v; want %q", c.why, err, c.want)
		}
		if err != nil {
			continue
		}
		for _, text := range r.texts() {
			t.Errorf("%s: %s", c.why, text)
		}
		note(t, r, "the operator's webhooks were called: /convert")
		if c.conversion == "" {
			note(t, r, "the manifests of lamps.example.com name no conversion webhook")
		}
	}

	s := lamps("plain", "") // without a converter, fields are lost as the strategy None loses them
	s.Steps[0].Expect = func(ctx context.Context, w *World) error {
		got := &lampV1{}
		return w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "plain"}, got)
	}
	s.Operator.SetUp = func(ctrl.Manager, *Env) error { return nil }
	if _, err := explored(t, s, time.Minute); err != nil {
		t.Errorf("without a converter: %v", err)
	}
}
