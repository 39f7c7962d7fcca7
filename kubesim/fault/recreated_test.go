package fault

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// TestRecreatedBeforeItsChange proves that an object which a user re-creates may end as if no step had changed it. The
// child of a is kept when a is deleted, and only grows, so at rest it has grown already.
func TestRecreatedBeforeItsChange(t *testing.T) {
	b := configMap("b")
	tests := map[string]struct {
		why     string
		between []Step
	}{
		"alone":  {"only the object was changed since", nil},
		"others": {"what other steps did to other objects counts, too", []Step{Create(b), Merge(b, `{"data":{"of":"others"}}`)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := configMap("a")
			a.Data = map[string]string{"size": "1"}
			r := Explore(t, Scenario{
				Name: name, Steps: slices.Concat([]Step{Create(a)}, test.between, []Step{Merge(a, `{"data":{"size":"2"}}`)}), Races: []Step{Recreate(a)},
				Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
					child := configMap("child")
					err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
					size := child.Data["size"]
					child.Data = maps.Clone(cm.Data)
					switch {
					case apierrors.IsNotFound(err):
						return 0, c.Create(ctx, child)
					case err != nil || size >= cm.Data["size"]:
						return 0, err
					case cm.Annotations["state"] != "grows":
						return 0, annotated(ctx, c, cm, "grows")
					}
					return 0, c.Update(ctx, child)
				})},
			}, Only(Races), Waive(I4, "it is kept on purpose"))
			for _, text := range r.texts() {
				t.Errorf("%s:\n%s", test.why, text)
			}
			if r.Schedules[Races] == 0 {
				t.Error("no race was played")
			}
		})
	}
}

// TestWrongAtRest proves that a re-creation which ends wrongly at rest, and well at another moment, is found once, and that the one
// that ends well is not blamed. The operator takes the child of the former object for somebody else's, unless it is just replacing it.
func TestWrongAtRest(t *testing.T) {
	a := configMap("a")
	a.Data = map[string]string{"size": "1"}
	r := Explore(t, Scenario{
		Name: "strangers", Steps: []Step{Create(a), Merge(a, `{"data":{"size":"2"}}`)}, Races: []Step{Recreate(a)}, Shared: []string{"configmaps"},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			child := configMap("child")
			err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
			state := cm.Annotations["state"]
			switch {
			case err != nil && state == "running":
				return 0, annotated(ctx, c, cm, "pending")
			case err != nil && apierrors.IsNotFound(err):
				child.Data, child.Annotations = maps.Clone(cm.Data), map[string]string{"of": string(cm.UID)}
				return time.Second, c.Create(ctx, child)
			case err != nil:
				return 0, err
			case child.Annotations["of"] != string(cm.UID):
				return 0, annotated(ctx, c, cm, "failed")
			case child.Data["size"] != cm.Data["size"]:
				return time.Second, c.Delete(ctx, child)
			}
			return 0, annotated(ctx, c, cm, "running")
		})},
	}, Only(Races), Waive(I4, "it is kept on purpose"))
	texts := r.texts()
	if len(texts) != 1 || len(r.Findings) != 1 {
		t.Fatalf("%d findings of %v, want 1:\n%s", len(texts), r.Schedules, strings.Join(texts, "\n"))
	}
	text := strings.Join(strings.Fields(texts[0]), " ")
	for _, part := range []string{
		`re-created at rest, metadata.annotations.state of ConfigMap default/a is "failed", "running" after the first creation`,
		"re-created at another moment (v1/strangers/race@", "scenario \"strangers\", a user comes when all is quiet:",
		"(- after the first creation, + here)", "-fault.replay='v1/strangers/later@2(0)'",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, texts[0])
		}
	}
}

// annotated writes a state into an annotation, if it is not there.
func annotated(ctx context.Context, c client.Client, cm *corev1.ConfigMap, state string) error {
	if cm.Annotations["state"] == state {
		return nil
	}
	metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "state", state)
	return c.Update(ctx, cm)
}

// TestStuckAtRest proves that an object which stays in deletion when another one is re-created at rest is found, once. The
// child is in use as long as there is an a, and the operator takes one in deletion for a child that is there.
func TestStuckAtRest(t *testing.T) {
	const finalizer, protection = "toy.dev/a", "toy.dev/in-use"
	protect := func(ctx context.Context, w *World) error {
		child := configMap("child")
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			return client.IgnoreNotFound(err)
		}
		used := w.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "a"}, configMap("a")) == nil
		if used && child.DeletionTimestamp == nil && controllerutil.AddFinalizer(child, protection) || !used && controllerutil.RemoveFinalizer(child, protection) {
			return w.Client.Update(ctx, child)
		}
		return nil
	}
	a := configMap("a")
	r := Explore(t, Scenario{
		Name: "stuck", Steps: []Step{Create(a)}, Races: []Step{Recreate(a)}, Shared: []string{"configmaps"}, Actors: []Actor{{Name: "protection", Act: protect}},
		Operator: Operator{SetUp: does(func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) (time.Duration, error) {
			child := configMap("child")
			switch {
			case cm.DeletionTimestamp != nil:
				controllerutil.RemoveFinalizer(cm, finalizer)
				return 0, cmp.Or(client.IgnoreNotFound(c.Delete(ctx, child)), c.Update(ctx, cm))
			case controllerutil.AddFinalizer(cm, finalizer):
				return 0, c.Update(ctx, cm)
			}
			err := c.Get(ctx, client.ObjectKeyFromObject(child), child)
			if apierrors.IsNotFound(err) {
				err = client.IgnoreAlreadyExists(c.Create(ctx, child))
			}
			return 0, err
		})},
	}, Only(Races))
	texts := r.texts()
	if len(texts) != 1 || len(r.Findings) != 1 || !strings.HasPrefix(texts[0], "re-created at rest, ConfigMap default/child is being deleted, which it is not ") {
		t.Errorf("%d findings of %v, want 1:\n%s", len(texts), r.Schedules, strings.Join(texts, "\n"))
	}
}
