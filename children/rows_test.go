package children_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// controllers returns the UIDs of the controllers of an object.
func controllers(obj client.Object) (uids []string) {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			uids = append(uids, string(ref.UID))
		}
	}
	return uids
}

// TestWaking: which changes of children wake whom (Java Operator SDK, events of dependents).
func TestWaking(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(children.Of(config1()), options{Loop: loop.Options[*probe.Probe]{MaxInterval: -1}})
	for _, name := range []string{"a", "b"} {
		w.ready(w.create(name, 1))
	}
	stranger, owned := w.child("stranger"), w.child("owned") // the second one is a child of the ConfigMap a, not of the Probe a
	parent := read(w, w.child("a"))
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: parent.UID, Controller: new(true)}}
	w.do(w.admin.Create(t.Context(), stranger))
	w.do(w.admin.Create(t.Context(), owned))

	t.Run("002-56 a change of a child is one call of its owner, and one of an unrelated object is none", func(t *testing.T) {
		for range 2 {
			w.next()
		}
		w.patch(w.child("a"), `{"data":{"size":"edited"}}`)
		w.next()
		if got := read(w, w.child("a")).Data["size"]; got != "x" {
			t.Errorf("the pass left the child as it was edited: %q", got)
		}
		w.patch(stranger, `{"data":{"size":"edited"}}`)
		w.patch(stranger, `{"metadata":{"labels":{"x":"y"}}}`)
		w.patch(owned, `{"data":{"size":"edited"}}`)
		w.delete(stranger)
		w.patch(w.child("b"), `{"metadata":{"labels":{"marker":"2"}}}`) // the watch delivers what happened before it first
		w.next()
		if diff := cmp.Diff([]string{"a", "b", "a", "b"}, w.passes()); diff != "" {
			t.Errorf("passes, those after the creations included (-want +got):\n%s", diff)
		}
	})
	t.Run("a converged object costs no request", func(t *testing.T) {
		w.requests.Reset()
		w.drain()
		w.patch(w.child("a"), `{"metadata":{"labels":{"z":"z"}}}`)
		w.next()
		if all := w.requests.All(); len(all) > 0 {
			t.Errorf("a pass that had nothing to do sent\n%v", all)
		}
	})
}

// TestOwnerReferences: whose business they are.
func TestOwnerReferences(t *testing.T) {
	t.Parallel()
	t.Run("002-18 with ManualOwnerRefs none is written, and the child goes nevertheless", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(children.Of(config1()), options{ManualOwnerRefs: true})
		p := w.ready(w.create("a", 1))
		w.patch(w.child("a"), `{"data":{"size":"edited"}}`)
		c := testenv.Wait(t, w.admin, w.child("a"), "the repair", func(c *corev1.ConfigMap) bool { return c.Data["size"] == "x" })
		if len(c.OwnerReferences) > 0 {
			t.Errorf("owner references %v, want none", c.OwnerReferences)
		}
		if !slices.Contains(p.Finalizers, finalizer) {
			t.Errorf("finalizers %v of the owner: without one, the child would stay", p.Finalizers)
		}
		w.delete(p)
		testenv.Gone(t, w.admin, p, "the owner to be gone")
		testenv.Gone(t, w.admin, c, "the child to be gone")
	})
	t.Run("003-11 every child has one controller, and goes with it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(children.Of(config1(), children.Named("more", configOf("more")), children.Named("precious", configOf("precious")).Protected()), options{})
		p := w.ready(w.create("a", 1))
		all := []*corev1.ConfigMap{w.child("a"), w.child("a-more"), w.child("a-precious")}
		for _, c := range all {
			if diff := cmp.Diff([]string{string(p.UID)}, controllers(read(w, c))); diff != "" {
				t.Errorf("controllers of %s (-want +got):\n%s", c.Name, diff)
			}
		}
		w.delete(p)
		for _, c := range all {
			testenv.Gone(t, w.admin, c, "the child to be gone")
		}
	})
}

// TestLists: children are found by labels, which costs nothing.
func TestLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	set := children.Of(config1(), children.Named("more", configOf("more")))
	found := make(chan []string, 100)
	requests := make(chan []testenv.Request, 100)
	w.start(set, options{Reconciler: composer{set, func(ctx context.Context, r *loop.Run[*probe.Probe]) {
		w.requests.Reset()
		list := &corev1.ConfigMapList{}
		w.do(r.Client().List(ctx, list, client.InNamespace(r.Obj.Namespace), client.MatchingLabels{ownerKey: string(r.Obj.UID)}))
		requests <- w.requests.All()
		var names []string
		for _, c := range list.Items {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		found <- names
	}}})
	w.do(w.admin.Create(t.Context(), w.child("stranger")))
	w.ready(w.create("a", 1))
	t.Run("a list by label inside a pass works from the cache", func(t *testing.T) {
		for len(found) > 0 {
			<-found
			<-requests
		}
		w.patch(w.child("a"), `{"metadata":{"labels":{"again":"1"}}}`)
		if diff := cmp.Diff([]string{"a", "a-more"}, <-found); diff != "" {
			t.Errorf("found (-want +got):\n%s", diff)
		}
		if sent := <-requests; len(sent) > 0 {
			t.Errorf("the list sent %v", sent)
		}
	})
}

// TestRecreatable: children of category 1.
func TestRecreatable(t *testing.T) {
	t.Parallel()
	t.Run("003-08 a child that is deleted is created again, and never had a finalizer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(children.Of(config1()), options{})
		events, err := w.admin.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(w.namespace))
		w.do(err)
		defer events.Stop()
		p := w.ready(w.create("a", 1))
		old := read(w, w.child("a"))
		w.delete(old)
		testenv.Wait(t, w.admin, w.child("a"), "the child to be created again", func(c *corev1.ConfigMap) bool { return c.UID != old.UID && c.Data["size"] == "x" })
		w.ready(p)
		w.delete(p)
		seen := map[watch.EventType]int{}
		for e := range events.ResultChan() {
			c, ok := e.Object.(*corev1.ConfigMap)
			if !ok || c.Name != "a" {
				continue
			}
			if seen[e.Type]++; len(c.Finalizers) > 0 {
				t.Errorf("%s: finalizers %v", e.Type, c.Finalizers)
			}
			if seen[watch.Deleted] == 2 {
				break
			}
		}
		if seen[watch.Added] != 2 {
			t.Errorf("the child was created %d times, want 2", seen[watch.Added])
		}
	})
	t.Run("003-19 without a reason there is no finalizer, and garbage collection deletes what an owner leaves", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(children.Of(config1(), children.Named("more", configOf("more"))), options{})
		p := w.create("a", 1)
		events, err := w.admin.Watch(t.Context(), &probe.ProbeList{}, client.InNamespace(w.namespace))
		w.do(err)
		defer events.Stop()
		p = w.ready(p)
		w.delete(p)
		for _, name := range []string{"a", "a-more"} {
			testenv.Gone(t, w.admin, w.child(name), "the child to be gone")
		}
		for e := range events.ResultChan() {
			if p, ok := e.Object.(*probe.Probe); ok && len(p.Finalizers) > 0 {
				t.Errorf("%s: finalizers %v", e.Type, p.Finalizers)
			}
			if e.Type == watch.Deleted {
				break
			}
		}
		w.stop() // whatever it had to send is sent
		if sent := w.deletes(); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
}

// TestProtected: children of category 2.
func TestProtected(t *testing.T) {
	t.Parallel()
	protected := func() *children.Set[*probe.Probe] { return children.Of(config1().Protected()) }
	t.Run("003-09 a protected child that is deleted stays until its owner goes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(protected(), options{})
		p := w.ready(w.create("a", 1))
		c := read(w, w.child("a"))
		w.delete(c)
		w.reason(p, "ChildrenNotReady")
		if now := read(w, w.child("a")); now.UID != c.UID || now.DeletionTimestamp == nil || now.Data["size"] != "x" {
			t.Errorf("the child is %+v, want it terminating", now)
		}
		w.patch(p, `{"spec":{"size":2}}`)
		testenv.Wait(t, w.admin, w.child("a"), "it to be kept up to date", func(c *corev1.ConfigMap) bool { return c.Data["size"] == "xx" })
		w.delete(p)
		testenv.Gone(t, w.admin, p, "the owner to be gone")
		testenv.Gone(t, w.admin, c, "the child to be gone")
	})
	t.Run("003-09 one that nobody deleted goes with its owner, without a request of ours", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(protected(), options{})
		p := w.ready(w.create("a", 1))
		w.delete(p)
		testenv.Gone(t, w.admin, p, "the owner to be gone")
		testenv.Gone(t, w.admin, w.child("a"), "the child to be gone")
		if sent := w.deletes(); len(sent) > 0 {
			t.Errorf("sent %v", sent)
		}
	})
	t.Run("003-10 the owner has its finalizer before the first protected child, which is created with its own", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.start(protected(), options{})
		w.ready(w.create("a", 1))
		writes := w.requests.Select(func(r testenv.Request) bool { return r.IsWrite() && r.Resource != "events" })
		var sent []string
		for _, r := range writes {
			var body probe.Probe
			w.do(json.Unmarshal(r.Body, &body))
			sent = append(sent, r.Verb+" "+r.Resource+" "+r.Subresource+" "+first(body.Finalizers))
		}
		want := []string{"patch probes  " + finalizer, "apply configmaps  " + finalizer, "apply probes status "}
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
