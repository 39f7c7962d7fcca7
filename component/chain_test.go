package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
)

// labelled labels an object, and leaves out those whose name begins with "no-".
func labelled(obj client.Object) (client.Object, error) {
	if strings.HasPrefix(obj.GetName(), "no-") {
		return nil, nil
	}
	if obj.GetName() == "wrong" {
		return nil, errors.New("it is wrong")
	}
	labels := obj.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["team"] = "shop"
	obj.SetLabels(labels)
	return obj, nil
}

// TestChain: what a renderer returns is changed before it is applied, also what is made later.
func TestChain(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := prepareBench(t, selling(v))
	called := false
	inner := component.RenderFunc[*bundle.Bundle](func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		db := s.Add(database("db", 3))
		address := component.From(&s, db, func(db *thing.Thing) client.Object { return configMap("address", db.Status.Host) })
		left := s.Add(configMap("no-1", ""))
		component.From(&s, s.Add(database("no-2", 1)), func(*thing.Thing) client.Object { return configMap("made-from-no-2", "") })
		s.Add(configMap("last", "1")).After(address, left)
		s.Do("work", "1", func(context.Context) error { called = true; return nil })
		return s, nil
	})
	b.renderer = component.Chain(inner, func(_ context.Context, _ component.RenderRequest[*bundle.Bundle], s *component.Set) error {
		return s.Each(labelled)
	}, func(_ context.Context, r component.RenderRequest[*bundle.Bundle], s *component.Set) error {
		s.Add(configMap("added", r.Name))
		return nil
	})
	b.start()
	b.create()
	b.ready()
	got := map[string]string{}
	for _, name := range []string{"address", "last", "added", "no-1", "made-from-no-2"} {
		var m corev1.ConfigMap
		if err := b.admin.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &m); err == nil {
			got[name] = m.Labels["team"]
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"address": "shop", "last": "shop", "added": ""}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if !called {
		t.Error("the function was not called")
	}
	v.with(func() {
		if len(v.things) != 1 {
			t.Errorf("%d databases, want 1", len(v.things))
		}
	})
}

// complete is a renderer with everything that one can have.
type complete struct {
	component.RenderFunc[*bundle.Bundle]
}

func (complete) Version() string                          { return "7" }
func (complete) Needs() []loop.Need                       { return []loop.Need{{Verbs: []string{"get"}}} }
func (complete) AddToScheme(scheme *runtime.Scheme) error { return thing.AddToScheme(scheme) }

func TestChainOf(t *testing.T) {
	t.Parallel()
	var s component.Set
	one := s.Add(configMap("one", "1")).Wave(3)
	s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "two"}}).After(one)
	before := s.Objects()
	chained := component.Chain(complete{func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) { return s, nil }},
		func(_ context.Context, _ component.RenderRequest[*bundle.Bundle], s *component.Set) error {
			return s.Each(labelled)
		})
	set, err := chained.Render(t.Context(), component.RenderRequest[*bundle.Bundle]{})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects, err := set.Annotated("op", scheme)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]string
	for i, o := range objects {
		got = append(got, o.GetAnnotations())
		if o.GetLabels()["team"] != "shop" || before[i].GetLabels()["team"] != "" {
			t.Errorf("labels: %v, those of what was rendered %v", o.GetLabels(), before[i].GetLabels())
		}
	}
	if diff := cmp.Diff([]map[string]string{{"op/apply-order": "3"}, {"op/depends-on": "/ConfigMap//one"}}, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if v, ok := chained.(component.Versioned); !ok || v.Version() != "7" {
		t.Error("the version is lost")
	}
	if n, ok := chained.(interface{ Needs() []loop.Need }); !ok || len(n.Needs()) != 1 {
		t.Error("the permissions are lost")
	}
	if b, ok := chained.(component.SchemeBuilder); !ok || b.AddToScheme(scheme) != nil || !scheme.Recognizes(thing.GroupVersion.WithKind("Thing")) {
		t.Error("the types are lost")
	}
	for name, set := range map[string]component.Set{"it is wrong": component.Objects(configMap("wrong", "")), "object 1 of the set is nil; leave it out": component.Objects(nil)} {
		if err := set.Each(labelled); err == nil || err.Error() != name {
			t.Errorf("the error is %v, want %s", err, name)
		}
	}
}
