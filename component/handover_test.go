package component_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// family is two components, of which "moved" goes from "a" to "b".
type family struct {
	*bench

	moved *corev1.ConfigMap
}

// newFamily starts an operator with the components "a", which has three objects, and "b", which has one.
func newFamily(t *testing.T, grace time.Duration, change ...func(*bench)) *family {
	t.Helper()
	b := prepareBench(t, func(o *options) { o.HandoverGrace = grace })
	for _, f := range change {
		f(b)
	}
	b.start()
	b.createAs("b", configMap("own", "b"))
	b.create(configMap("one", "a"), configMap("two", "a"), configMap("moved", "a"))
	b.ready()
	b.readyAs("b")
	b.requests.Reset()
	return &family{b, b.live("moved")}
}

func (b *bench) readyAs(name string) *bundle.Bundle {
	b.t.Helper()
	return b.awaitAs(name, "ready", isReady)
}

func (b *bench) awaitAs(name, why string, ok func(*bundle.Bundle) bool) *bundle.Bundle {
	b.t.Helper()
	return testenv.Wait(b.t, b.admin, &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}, why, ok)
}

// changeAs gives a component other objects.
func (b *bench) changeAs(name string, objects ...client.Object) {
	b.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"objects": b.raw(objects...)}})
	if err != nil {
		b.t.Fatal(err)
	}
	obj := &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	if err := b.admin.Patch(b.t.Context(), obj, client.RawPatch(types.MergePatchType, patch)); err != nil {
		b.t.Fatal(err)
	}
}

// lose takes the object from the manifests of "a", gain puts it into those of "b", with another value.
func (f *family) lose() { f.changeAs("a", configMap("one", "a"), configMap("two", "a")) }

func (f *family) gain(annotations ...string) {
	f.changeAs("b", configMap("own", "b"), configMap("moved", "b", annotations...))
}

// refused waits until "b" waits for the object.
func (f *family) refused() {
	f.t.Helper()
	f.awaitAs("b", "it waits for the object", func(o *bundle.Bundle) bool {
		return strings.Contains(o.Status.Message, f.namespace+"/a; it is taken over when")
	})
}

// settled waits until the object is that of "b", and checks that it was never deleted.
func (f *family) settled() {
	f.t.Helper()
	f.readyAs("b")
	f.recordedIn("b", 2)
	f.recordedIn("a", 2)
	f.readyAs("a")
	f.handedOver()
}

func (f *family) recordedIn(name string, n int) {
	f.t.Helper()
	f.awaitAs(name, fmt.Sprintf("has %d dependents", n), func(o *bundle.Bundle) bool { return len(o.Status.Inventory) == n })
}

// handedOver checks the object.
func (f *family) handedOver() {
	f.t.Helper()
	now, b := f.live("moved"), f.readyAs("b")
	if now.UID != f.moved.UID {
		f.t.Errorf("it was deleted: its UID was %s and is %s", f.moved.UID, now.UID)
	}
	for _, r := range f.requests.All() {
		if r.Verb == "delete" && r.Name == "moved" {
			f.t.Errorf("a request to delete it: %s", r)
		}
	}
	owner := now.Annotations[f.key("owner-id")]
	if now.Data["value"] != "b" || !strings.Contains(owner, f.namespace+"/b@"+string(b.UID)) || now.Labels[f.key("owner-id")] != f.live("own").Labels[f.key("owner-id")] {
		f.t.Errorf("value %q, owner %q, label %q; want those of b", now.Data["value"], owner, now.Labels[f.key("owner-id")])
	}
	if from := now.Annotations[f.key("handed-over-by")]; from != "" {
		f.t.Errorf("it still says that it was handed over by %s", from)
	}
	if n := len(now.ManagedFields); n != 1 {
		f.t.Errorf("%d owners of fields, want one: %v", n, now.ManagedFields)
	}
	for _, item := range f.readyAs("a").Status.Inventory {
		if item.Name == "moved" {
			f.t.Errorf("a still has it recorded: %v", item)
		}
	}
}

// TestHandoverOfOldOwner: an object whose owner annotation is that of component-operator-runtime moves as well.
func TestHandoverOfOldOwner(t *testing.T) {
	t.Parallel()
	f := newFamily(t, time.Hour)
	f.stop()
	owner, _, _ := strings.Cut(f.moved.Annotations[f.key("owner-id")], "@")
	body := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, f.key("owner-id"), owner)
	if err := f.admin.Patch(t.Context(), f.live("moved"), client.RawPatch(types.MergePatchType, []byte(body)), client.FieldOwner(f.operator)); err != nil {
		t.Fatal(err)
	}
	f.gain()
	f.lose()
	f.start()
	f.settled()
}

// TestHandover: an object moves from one component to another.
func TestHandover(t *testing.T) {
	t.Parallel()
	const long = time.Minute // nobody waits for it
	t.Run("B-12 in one commit", func(t *testing.T) {
		stories := map[string]func(*family){
			"the new component comes first": func(f *family) {
				f.gain()
				f.refused()
				f.lose()
			},
			"the old component comes first": func(f *family) {
				f.lose()
				f.awaitAs("a", "it keeps the object", func(o *bundle.Bundle) bool {
					return strings.Contains(o.Status.Message, "in case another component takes it over")
				})
				f.gain()
			},
			"both at the same time": func(f *family) {
				f.lose()
				f.gain()
			},
			"while the operator is away": func(f *family) {
				f.stop()
				f.gain()
				f.lose()
				f.start()
			},
			"it is restarted in between": func(f *family) {
				f.gain()
				f.refused()
				f.stop()
				f.lose()
				f.start()
			},
			"it is replaced": func(f *family) {
				f.gain(f.key("update-policy"), "replace")
				f.lose()
			},
			"its fields may have no other owner": func(f *family) {
				f.gain(f.key("conflict-policy"), "fail")
				f.lose()
			},
		}
		for _, mode := range []api.Mode{api.ModeFull, api.ModeDetectOnly} { // those in which objects are deleted
			for name, story := range stories {
				t.Run(fmt.Sprintf("mode %s, %s", mode, name), func(t *testing.T) {
					t.Parallel()
					f := newFamily(t, long)
					if mode != api.ModeFull {
						f.patch("bundles.trimtab.dev/v1", "Bundle", "a", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, f.key("mode"), mode))
						f.fence()
					}
					story(f)
					f.settled()
				})
			}
		}
	})
	t.Run("without a delay, if the new component comes first", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, -1)
		f.gain()
		f.refused()
		f.lose()
		f.settled()
	})
	t.Run("the old component is deleted", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, long)
		f.gain()
		f.refused()
		f.delete()
		f.gone()
		f.readyAs("b")
		now := f.live("moved")
		if now.UID != f.moved.UID || now.Data["value"] != "b" {
			t.Errorf("UID %s with value %q, want UID %s with value b", now.UID, now.Data["value"], f.moved.UID)
		}
		testenv.Gone(t, f.admin, f.named("one"), "deleted with a")
	})
	t.Run("more than half moves", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, -1)
		uids := map[string]types.UID{"one": f.live("one").UID, "two": f.live("two").UID, "moved": f.moved.UID}
		f.changeAs("b", configMap("own", "b"), configMap("one", "b"), configMap("two", "b"), configMap("moved", "b"))
		f.refused()
		f.changeAs("a")
		f.recordedIn("b", 4)
		f.readyAs("b")
		for name, uid := range uids {
			if now := f.live(name); now.UID != uid || now.Data["value"] != "b" {
				t.Errorf("%s has UID %s and value %q, want %s and b", name, now.UID, now.Data["value"], uid)
			}
		}
		f.recordedIn("a", 0)
		f.ready()
	})
	t.Run("a component that adopts nothing", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, -1)
		f.gain(f.key("adoption-policy"), "never")
		f.awaitAs("b", "refused", func(o *bundle.Bundle) bool { return o.Status.State == component.StateError })
		f.lose()
		testenv.Wait(t, f.admin, f.named("moved"), "another object", func(m *corev1.ConfigMap) bool { return m.UID != f.moved.UID })
	})
	t.Run("nobody takes it over", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, 50*time.Millisecond)
		f.lose()
		testenv.Gone(t, f.admin, f.named("moved"), "deleted after the delay")
		f.recordedIn("a", 2)
		f.ready()
	})
	for name, before := range map[string]func(*family){
		"": func(*family) {},
		", after it was repaired": func(f *family) {
			f.drop(f.named("moved"))
			testenv.Wait(f.t, f.admin, f.named("moved"), "created again", func(m *corev1.ConfigMap) bool { return m.UID != f.moved.UID })
			f.fence() // the UID is not recorded
		},
		", and it is not recorded that it was created": func(f *family) {
			f.stop()
			f.record("a", func(item *api.InventoryItem) {
				item.UID, item.Digest, item.Fingerprint, item.Phase = "", "", "", api.PhaseScheduledForApplication
			})
		},
	} {
		t.Run("it was handed over and never recorded there"+name, func(t *testing.T) {
			t.Parallel()
			f := newFamily(t, -1)
			before(f)
			f.stop()
			own := f.live("own")
			owner := strings.Replace(own.Annotations[f.key("owner-id")], "/own", "/moved", 1)
			f.patch("v1", "ConfigMap", "moved", fmt.Sprintf(`{"metadata":{"labels":{%q:%q},"annotations":{%q:%q,%q:%q}}}`,
				f.key("owner-id"), own.Labels[f.key("owner-id")], f.key("owner-id"), owner, f.key("handed-over-by"),
				strings.Split(f.moved.Annotations[f.key("owner-id")], "@")[0]))
			f.lose()
			f.start()
			f.recordedIn("a", 2)
			testenv.Gone(t, f.admin, f.named("moved"), "taken back and deleted")
		})
	}
	t.Run("the new component changes its mind at the last moment", func(t *testing.T) {
		t.Parallel()
		f := newFamily(t, -1, func(b *bench) {
			b.onHandover(func(send func()) {
				b.withdraw()
				send()
			})
		})
		f.gain()
		f.refused()
		f.lose()
		testenv.Gone(t, f.admin, f.named("moved"), "taken back and deleted")
		f.recordedIn("a", 2)
		f.readyAs("b")
		f.recordedIn("b", 1)
	})
	t.Run("both change their minds while it is handed over", func(t *testing.T) {
		t.Parallel()
		watch := &gate{resource: "configmaps"}
		f := newFamily(t, -1, func(b *bench) {
			b.cfg.Wrap(watch.wrap)
			b.onHandover(func(send func()) {
				watch.mu.Lock() // nobody sees whose it is now
				defer watch.mu.Unlock()
				send()
				b.changeAs("a", configMap("one", "a"), configMap("two", "a"), configMap("moved", "again"))
				b.withdraw()
			})
		})
		f.gain()
		f.refused()
		f.lose()
		testenv.Wait(t, f.admin, f.named("moved"), "that of a again", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "again" })
		if now := f.live("moved"); now.UID != f.moved.UID {
			t.Errorf("it was deleted: its UID was %s and is %s", f.moved.UID, now.UID)
		}
		f.readyAs("a")
		f.recordedIn("a", 3)
		f.readyAs("b")
		f.recordedIn("b", 1)
	})
}

// onHandover calls do instead of sending the first request that makes the object another component's. Send sends it; the
// operator has the answer when do returns.
func (b *bench) onHandover(do func(send func())) {
	var done atomic.Bool // not a sync.Once: other requests must go on meanwhile
	b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (resp *http.Response, err error) {
			send := func() { resp, err = next.RoundTrip(r) } //nolint:bodyclose // the caller does
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/moved") && strings.Contains(r.Header.Get("Content-Type"), "merge-patch") && done.CompareAndSwap(false, true) {
				do(send)
			}
			if resp == nil && err == nil {
				send()
			}
			return resp, err
		})
	})
}

// withdraw has "b" no longer want the object, and waits until it is not recorded there.
func (b *bench) withdraw() {
	b.changeAs("b", configMap("own", "b"))
	obj := &bundle.Bundle{}
	if !poll.Until(func() bool {
		err := b.admin.Get(b.t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "b"}, obj)
		return err == nil && len(obj.Status.Inventory) == 1
	}) {
		b.t.Errorf("b still has the object recorded: %v", obj.Status.Inventory)
	}
}

// record changes what a component has recorded of the object.
func (f *family) record(name string, change func(*api.InventoryItem)) {
	for {
		obj := &bundle.Bundle{}
		if err := f.admin.Get(f.t.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, obj); err != nil {
			f.t.Error(err)
			return
		}
		for i := range obj.Status.Inventory {
			if obj.Status.Inventory[i].Name == "moved" {
				change(&obj.Status.Inventory[i])
			}
		}
		err := f.admin.Status().Update(f.t.Context(), obj)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			f.t.Error(err)
		}
		return
	}
}
