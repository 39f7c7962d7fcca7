package component_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestConflicts(t *testing.T) {
	t.Parallel()
	t.Run("W11 conflict-policy fail", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		one := func(value string) *corev1.ConfigMap {
			return policy(b, policy(b, data("one", "value", value, "more", "1"), "conflict-policy", "fail"), "update-policy", "ssa-merge")
		}
		b.create(one("1"))
		b.ready()
		b.merge("them", b.named("one"), `{"data":{"value":"theirs"}}`)
		b.failed("ConfigMap "+b.namespace+"/one", `data.value belongs to field manager "them"`, b.key("conflict-policy")+": force")
		b.hasData("one", map[string]string{"value": "theirs", "more": "1"})
		b.merge("them", b.named("one"), `{"data":{"value":null}}`)
		b.value("one", "1")
		b.ready()
	})
}

func claim(size string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("none"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// uid returns the UID of an object of the bench.
func uid[T client.Object](b *bench, o T) types.UID {
	b.t.Helper()
	if err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: o.GetName()}, o); err != nil {
		b.t.Fatal(err)
	}
	return o.GetUID()
}

func TestImmutable(t *testing.T) {
	t.Parallel()
	t.Run("B-13 proven immutability", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		secret := func(value, opt string) *corev1.Secret {
			s := &corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s"},
				Immutable: new(true), StringData: map[string]string{"a": value},
			}
			return policy(b, s, "immutable-policy", opt)
		}
		claimed := func(size string) client.Object { return policy(b, claim(size), "immutable-policy", "recreate") }
		b.create(secret("1", "fail"))
		b.ready()
		first := uid(b, secret("", ""))
		b.change(secret("2", "fail"))
		b.failed("Secret "+b.namespace+"/s", "immutable")
		if uid(b, secret("", "")) != first {
			t.Error("created again without being asked")
		}
		b.change(secret("2", "recreate"))
		b.ready()
		second := uid(b, secret("", ""))
		if second == first {
			t.Error("the Secret is still the first one")
		}

		invalid := secret("3", "recreate")
		invalid.StringData["not a key"] = "x"
		b.change(invalid)
		b.failed("Secret "+b.namespace+"/s", "not a key")
		b.fence()
		if uid(b, secret("", "")) != second {
			t.Error("an invalid manifest had the object deleted")
		}

		b.change(secret("2", "recreate"), claimed("2Gi"))
		testenv.Wait(t, b.admin, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "data"}}, "exists",
			func(c *corev1.PersistentVolumeClaim) bool { return true })
		third := uid(b, claim("1Gi"))
		b.change(secret("2", "recreate"), claimed("1Gi"))
		b.failed("PersistentVolumeClaim "+b.namespace+"/data", b.key("accept-data-loss"))
		if uid(b, claim("1Gi")) != third {
			t.Error("a claim was deleted without the second annotation")
		}
		b.change(secret("2", "recreate"), policy(b, claimed("1Gi"), "accept-data-loss", "true"))
		b.await("applied", func(o *bundle.Bundle) bool {
			return len(o.Status.Inventory) == 2 && o.Status.ObservedGeneration == o.Generation
		})
		testenv.Wait(t, b.admin, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "data"}}, "created again", func(c *corev1.PersistentVolumeClaim) bool { return c.UID != "" && c.UID != third })
	})
}

// TestFight: others change what the operator applies, each time at once. That the pause is a minute by
// default, and when a fight ends, is in the tests of package engine.
func TestFight(t *testing.T) {
	t.Parallel()
	t.Run("B-17 fights", func(t *testing.T) {
		t.Parallel()
		t.Run("another manager", slowedDown)
		t.Run("admission", admissionIsNoFight)
	})
}

func slowedDown(t *testing.T) {
	const pause = 3 * time.Second
	b := newBench(t, func(o *options) { o.CorrectInterval = pause })
	b.create(configMap("one", "1"))
	b.ready()
	b.requests.Reset()
	for range 4 {
		b.merge("them", b.named("one"), `{"data":{"value":"theirs"}}`)
		b.value("one", "1")
	}
	last := time.Now()
	b.merge("them", b.named("one"), `{"data":{"value":"theirs"}}`)
	o := b.await("contended", func(o *bundle.Bundle) bool {
		return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionContended) && !isReady(o)
	})
	message := meta.FindStatusCondition(o.Status.Conditions, api.ConditionContended).Message
	if !containsAll(message, []string{"ConfigMap " + b.namespace + "/one", "them changes data.value"}) {
		t.Errorf("message %q does not name object, manager and field", message)
	}
	b.value("one", "1")
	if waited := time.Since(last); waited < pause-time.Second {
		t.Errorf("corrected again after %v, want %v", waited, pause)
	}
	b.wrote("one", 5)
}

func TestIgnore(t *testing.T) {
	t.Parallel()
	t.Run("B-19 fields left to others", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		web := func(replicas int32, image string, annotations ...string) *appsv1.Deployment {
			d := deployment("web", image)
			d.Spec.Replicas = &replicas
			for i := 0; i < len(annotations); i += 2 {
				policy(b, d, annotations[i], annotations[i+1])
			}
			return d
		}
		get := func() *appsv1.Deployment {
			d := deployment("web", "")
			uid(b, d)
			return d
		}
		scaled := func(n int32) {
			t.Helper()
			if d := get(); *d.Spec.Replicas != n {
				t.Errorf("%d replicas, want %d", *d.Spec.Replicas, n)
			}
		}
		after := []string{"ignore-after-creation", "/spec/replicas"}
		b.create(web(0, "a", after...))
		b.await("applied", func(o *bundle.Bundle) bool { return len(o.Status.Inventory) == 1 && o.Status.Inventory[0].Digest != "" })
		scaled(0)
		b.requests.Reset()
		b.merge("autoscaler", deployment("web", ""), `{"spec":{"replicas":2}}`)
		b.fence()
		scaled(2)
		if writes := b.requests.Writes("deployments", b.namespace, "web"); len(writes) > 0 {
			t.Errorf("an ignored field was corrected: %v", writes)
		}
		b.change(web(5, "b", after...))
		testenv.Wait(t, b.admin, get(), "changed", func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "b" })
		scaled(2)
		b.change(web(3, "b"))
		testenv.Wait(t, b.admin, get(), "no longer ignored", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 3 })
		before := get().Annotations[b.key("digest")]
		b.change(web(1, "c", "ignore", "spec.replicas, spec.template.spec.containers[name=a].image"))
		testenv.Wait(t, b.admin, get(), "applied", func(d *appsv1.Deployment) bool { return d.Annotations[b.key("digest")] != before })
		scaled(3) // the value of a field that the operator owned before
		if image := get().Spec.Template.Spec.Containers[0].Image; image != "b" {
			t.Errorf("image %s, want b", image)
		}
	})
}

func deployment(name, image string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: image}}},
			},
		},
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"object", "component"} {
		t.Run("B-30 modes by "+scope, func(t *testing.T) {
			t.Parallel()
			b := prepareBench(t)
			b.start()
			one := func(value, mode string) *corev1.ConfigMap {
				m := configMap("one", value)
				if scope == "object" && mode != "" {
					policy(b, m, "mode", mode)
				}
				return m
			}
			// set gives the component objects and a mode, at once.
			set := func(value, mode string) {
				t.Helper()
				if scope == "component" {
					annotation := fmt.Sprintf("%q", mode)
					if mode == "" {
						annotation = "null"
					}
					b.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, b.key("mode"), annotation))
					b.fence()
				}
				b.change(one(value, mode), configMap("two", value))
			}
			b.create(one("1", ""), configMap("two", "1"))
			b.ready()

			set("2", "detect-only")
			b.value("one", "2") // a new manifest is applied
			b.ready()
			b.requests.Reset()
			b.merge("them", b.named("one"), `{"data":{"value":"theirs"}}`)
			o := b.await("drift reported", func(o *bundle.Bundle) bool {
				return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionDrifted)
			})
			if c := meta.FindStatusCondition(o.Status.Conditions, api.ConditionDrifted); !strings.Contains(c.Message, "ConfigMap "+b.namespace+"/one") {
				t.Errorf("message %q does not name the object", c.Message)
			}
			b.fence()
			b.wrote("one", 0)

			set("2", "suspended")
			b.fence()
			b.change(one("3", "suspended"), configMap("two", "3"))
			b.await("suspended", func(o *bundle.Bundle) bool {
				return o.Status.ObservedGeneration == o.Generation && strings.Contains(o.Status.Message, "ConfigMap "+b.namespace+"/one: it is not changed in mode suspended")
			})
			b.wrote("one", 0)
			if scope == "object" {
				b.value("two", "3")
			} else {
				b.wrote("two", 0)
			}

			set("3", "")
			b.value("one", "3")
			o = b.ready()
			if meta.FindStatusCondition(o.Status.Conditions, api.ConditionDrifted) != nil {
				t.Error("the condition Drifted is left")
			}
			b.change(one("3", "suspended"), configMap("two", "3"))
			b.delete()
			b.gone()
			testenv.Gone(t, b.admin, b.named("one"), "a deletion is not suspended")
		})
	}
}

// TestAnswers: what the API server says is shown, and costs no more than the object it is about.
func TestAnswers(t *testing.T) {
	t.Parallel()
	t.Run("W6 one object is refused", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.deny("b")
		b.start()
		bad := configMap("d", "1")
		bad.Data = map[string]string{"not a key": "x"}
		b.create(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), bad)
		b.failed("2 of 4 dependents failed: cannot create ConfigMap "+b.namespace+"/b: ", "not this one; cannot create ConfigMap "+b.namespace+"/d: ", "not a key")
		b.value("a", "1")
		b.value("c", "1")
	})
	t.Run("W7 fields that the client does not know", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "fieldOfTomorrow": "x",
		}})
		b.failed("ConfigMap "+b.namespace+"/one", "fieldOfTomorrow")
		if refused := b.requests.Select(func(r testenv.Request) bool { return r.Resource == "configmaps" && r.Name == "one" && r.Code >= 400 }); len(refused) == 0 {
			t.Errorf("it was not the API server that refused the field:\n%s", b.requests)
		}
	})
	t.Run("an older object of the name is being deleted", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		old := b.foreign("one", "")
		b.merge("them", b.named("one"), `{"metadata":{"finalizers":["example.org/theirs"]}}`)
		if err := b.admin.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.create(configMap("one", "1"))
		b.await("waiting", func(o *bundle.Bundle) bool {
			return o.Status.State == "Processing" && strings.Contains(o.Status.Message, "cannot be created while an older object of that name is being deleted")
		})
		b.merge("them", b.named("one"), `{"metadata":{"finalizers":null}}`)
		b.value("one", "1")
		b.ready()
	})
	t.Run("an object is created again while it is updated", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		var armed atomic.Bool
		b.before(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/one") && armed.Load()
		}, func() {
			live := b.live("one")
			if err := b.admin.Delete(t.Context(), live); err != nil {
				t.Error(err)
			}
			b.foreign("one", "")
		})
		b.start()
		b.create(configMap("one", "1"))
		b.ready()
		armed.Store(true)
		b.requests.Reset()
		b.change(configMap("one", "2"))
		b.value("one", "2")
		b.ready()
	})
	t.Run("what was applied before a reset of managedFields goes", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(data("one", "value", "1", "dropped", "x"))
		b.ready()
		b.merge("them", b.named("one"), `{"data":{"theirs":"x"}}`)
		if err := b.admin.Patch(t.Context(), b.named("one"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, b.named("one"), "owned again", func(m *corev1.ConfigMap) bool { return len(m.ManagedFields) > 1 })
		b.change(data("one", "value", "2"))
		b.ready()
		b.hasData("one", map[string]string{"value": "2", "theirs": "x"})
	})
}
