package component_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// left makes component "a" and its dependents as component-operator-runtime leaves them (v0.3.158, pkg/reconciler and
// pkg/component): one without a path in the name of its finalizer, also on definitions, the hash of the owner in a label,
// the owner in an annotation, and an inventory in the status.
func (s *shop) left(objects, unrendered []client.Object) map[string]types.UID {
	s.t.Helper()
	c := client.WithFieldOwner(s.admin, s.operator)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := s.admin.Get(s.t.Context(), client.ObjectKeyFromObject(space), space); err != nil {
		s.t.Fatal(err)
	}
	owner := string(space.UID) + "/" + s.namespace + "/a"
	sum := sha256.Sum256([]byte(owner))
	obj := s.create(product.Spec{}, objects...)
	obj.Finalizers = []string{s.operator}
	if err := c.Update(s.t.Context(), obj); err != nil {
		s.t.Fatal(err)
	}
	uids := map[string]types.UID{}
	var items []map[string]any
	for _, o := range slices.Concat(objects, unrendered) {
		text, err := json.Marshal(o)
		if err != nil {
			s.t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			s.t.Fatal(err)
		}
		kind := u.GroupVersionKind()
		item := map[string]any{
			"group": kind.Group, "version": kind.Version, "kind": kind.Kind, "name": u.GetName(),
			"adoptionPolicy": "if-unowned", "reconcilePolicy": "on-object-change", "updatePolicy": "replace", "deletePolicy": "delete",
			"applyOrder": 0, "deleteOrder": 0, "digest": strings.Repeat("0", 64), "phase": "Ready", "status": "Current", "lastAppliedAt": "2026-01-01T00:00:00Z",
		}
		if kind.Kind == "CustomResourceDefinition" {
			u.SetFinalizers([]string{s.operator})
		} else {
			u.SetNamespace(s.namespace)
			item["namespace"] = s.namespace
		}
		u.SetLabels(map[string]string{s.operator + "/owner-id": strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))})
		u.SetAnnotations(map[string]string{s.operator + "/owner-id": owner, s.operator + "/digest": strings.Repeat("0", 64)})
		if err := c.Create(s.t.Context(), u); err != nil {
			s.t.Fatal(err)
		}
		uids[u.GetName()] = u.GetUID()
		items = append(items, item)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": 1, "appliedGeneration": 1, "lastAppliedAt": "2026-01-01T00:00:00Z", "lastObservedAt": "2026-01-01T00:00:00Z",
		"processingDigest": "", "lastProcessingDigest": strings.Repeat("1", 64), "revision": 3, "state": "Ready", "inventory": items,
		"conditions": []map[string]any{{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Status().Patch(s.t.Context(), obj, client.RawPatch(types.MergePatchType, status)); err != nil {
		s.t.Fatal(err)
	}
	return uids
}

// TestMoved: an operator of component-operator-runtime is built with trimtab, and goes on with what is there.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]api.UpdatePolicy{"replace": "", "server-side apply": api.UpdatePolicySsaOverride} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.options.Finalizer = &s.operator
			if policy != "" {
				s.options.UpdatePolicy = &policy
			}
			kind := schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"}
			uids := s.left([]client.Object{configMap("one", "1"), plain(kind)}, []client.Object{configMap("unrendered", "1")})
			s.start()
			testenv.Gone(t, s.admin, s.configMap("unrendered"), "what is no longer rendered")
			moved := s.await("Ready", func(p *product.Product) bool {
				return p.Status.State == component.StateReady && len(p.Status.Inventory) == 2 && p.Status.Inventory[0].UID != "" && p.Status.Inventory[1].UID != ""
			})
			if diff := cmp.Diff([]string{s.operator}, moved.Finalizers); diff != "" {
				t.Errorf("finalizers of the component (-want +got):\n%s", diff)
			}
			now := map[string]types.UID{"unrendered": uids["unrendered"]}
			for _, item := range moved.Status.Inventory {
				now[item.Name] = types.UID(item.UID)
			}
			if diff := cmp.Diff(uids, now); diff != "" {
				t.Errorf("UIDs (-want +got):\n%s", diff)
			}
			for _, r := range s.requests.Select(func(r testenv.Request) bool { return r.Verb == "delete" }) {
				if r.Name != "unrendered" {
					t.Errorf("it sent %v", r)
				}
			}
			s.delete()
			testenv.Gone(t, s.admin, s.named("a"), "deleted")
			testenv.Gone(t, s.admin, s.configMap("one"), "deleted")
			testenv.Gone(t, s.admin, crdOf(plain(kind).GetName()), "deleted, without the finalizer of the other operator")
		})
	}
	t.Run("deleted meanwhile", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		s.options.Finalizer = &s.operator
		kind := schema.GroupKind{Group: s.namespace + ".example.org", Kind: "Baz"}
		s.left([]client.Object{configMap("one", "1"), plain(kind)}, nil)
		s.delete()
		s.start()
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		testenv.Gone(t, s.admin, s.configMap("one"), "deleted")
		testenv.Gone(t, s.admin, crdOf(plain(kind).GetName()), "deleted")
	})
}

// TestOldOwnerOfACopy: only an object that component-operator-runtime recorded is the component's own by its old owner
// annotation. One that was made by hand is neither overwritten nor deleted.
func TestOldOwnerOfACopy(t *testing.T) {
	t.Parallel()
	copied := func(b *bench, owner string) {
		kept := configMap("kept", "precious", b.key("owner-id"), owner)
		kept.Namespace = b.namespace
		if err := b.admin.Create(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("made by trimtab", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.create(configMap("one", "1"))
		b.ready()
		owner, _, _ := strings.Cut(b.live("one").Annotations[b.key("owner-id")], "@")
		copied(b, owner)
		b.change(configMap("one", "1"), configMap("kept", "new", b.key("adoption-policy"), "never"))
		b.failed("ConfigMap " + b.namespace + "/kept exists and has the owner annotation of this component, which did not make it; set " + b.key("adoption-policy") + ": always to adopt it")
		b.delete()
		b.gone()
		if now := b.live("kept").Data["value"]; now != "precious" {
			t.Errorf("it was overwritten with %q", now)
		}
	})
	t.Run("recorded without its UID", func(t *testing.T) {
		t.Parallel()
		s := newShop(t)
		s.options.Finalizer = &s.operator
		s.left([]client.Object{configMap("one", "1")}, []client.Object{configMap("kept", "1")})
		live := s.configMap("kept")
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		again := s.configMap("kept")
		again.Labels, again.Annotations, again.Data = live.Labels, live.Annotations, map[string]string{"value": "precious"}
		if err := s.admin.Delete(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		if err := s.admin.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		s.start()
		s.await("ready", func(p *product.Product) bool {
			return p.Status.State == component.StateReady && len(p.Status.Inventory) == 1
		})
		s.delete()
		testenv.Gone(t, s.admin, s.named("a"), "deleted")
		if err := s.admin.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil {
			t.Errorf("a copy made by hand: %v", err)
		}
	})
}

// TestMovedOnce: an object that is never written again keeps its content, and becomes the component's own.
func TestMovedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.options.Finalizer = &s.operator
	uids := s.left([]client.Object{configMap("one", "1", s.operator+"/reconcile-policy", "once")}, nil)
	one := s.configMap("one")
	if err := s.admin.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"2"}}`))); err != nil {
		t.Fatal(err)
	}
	s.start()
	uid := s.await("exists", func(*product.Product) bool { return true }).UID
	one = testenv.Wait(t, s.admin, one, "its owner has a UID", func(m *corev1.ConfigMap) bool {
		return strings.HasSuffix(m.Annotations[s.operator+"/owner-id"], "@"+string(uid)+" /ConfigMap/"+s.namespace+"/one")
	})
	if one.UID != uids["one"] || one.Data["value"] != "2" {
		t.Errorf("UID %s, value %q; want %s and 2", one.UID, one.Data["value"], uids["one"])
	}
}

// crdOf names a definition.
func crdOf(name string) *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, nil)
}
