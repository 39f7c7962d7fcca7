package component_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/testenv"
)

// inUse is the finalizer of the Secrets that the components of a bench need.
func (b *placedBench) inUse() string { return b.operator + "/in-use-by-placed" }

func (b *placedBench) secretOf(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
}

// held waits until a Secret has the finalizer.
func (b *placedBench) held(name string) {
	b.t.Helper()
	testenv.Wait(b.t, b.admin, b.secretOf(name), "held", func(s *corev1.Secret) bool { return slices.Contains(s.Finalizers, b.inUse()) })
}

// free waits until a Secret that exists has no finalizer.
func (b *placedBench) free(name string) {
	b.t.Helper()
	testenv.Wait(b.t, b.admin, b.secretOf(name), "released", func(s *corev1.Secret) bool { return len(s.Finalizers) == 0 })
}

// secretWrites are the requests that change Secrets.
func (b *placedBench) secretWrites() int {
	n := 0
	for _, r := range b.requests.All() {
		if r.Resource == "secrets" && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			n++
		}
	}
	return n
}

// orders are all orders of n things.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// account creates a service account with a role binding in the namespace of the bench, which may be deleted.
func (b *placedBench) account(name, role string) (*corev1.ServiceAccount, *rbacv1.RoleBinding) {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, obj := range []client.Object{account, binding} {
		if err := b.admin.Create(b.t.Context(), obj); err != nil {
			b.t.Fatal(err)
		}
	}
	return account, binding
}

// role creates a cluster role for dependents.
func (b *placedBench) role() string {
	b.t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "bundles.trimtab.dev"}, Resources: []string{"configmaps", "bundles"}, Verbs: []string{"*"}}},
	}
	if err := b.admin.Create(b.t.Context(), role); err != nil {
		b.t.Fatal(err)
	}
	return role.Name
}

// ends notes in which order Secrets and components of a namespace went, by resource version.
type ends struct {
	mu   sync.Mutex
	at   map[string]uint64
	left []string // dependents that were there when their Secret went
}

func (b *placedBench) watchEnds(s *site, there string) *ends {
	b.t.Helper()
	e := &ends{at: map[string]uint64{}}
	for kind, list := range map[string]client.ObjectList{"secret": &corev1.SecretList{}, "component": &placedList{}} {
		w, err := b.admin.Watch(b.t.Context(), list, client.InNamespace(b.namespace))
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(w.Stop)
		go func() {
			for event := range w.ResultChan() {
				obj, ok := event.Object.(client.Object)
				if !ok || event.Type != watch.Deleted {
					continue
				}
				version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
				key := types.NamespacedName{Namespace: there, Name: obj.GetName()}
				left := kind == "secret" && s.admin.Get(b.t.Context(), key, &corev1.ConfigMap{}) == nil
				e.mu.Lock()
				if err == nil {
					e.at[kind+" "+obj.GetName()] = version
				}
				if left {
					e.left = append(e.left, obj.GetName())
				}
				e.mu.Unlock()
			}
		}()
	}
	return e
}

// namespaceDeleted deletes what a namespace contains as the namespace controller does: all of it at once, in an
// order of its own.
func namespaceDeleted(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) { b.options.DeleteAsOperator = true })
	there, role := testenv.Namespace(t, s.cfg), b.role()
	config := kubeconfig(t, testenv.User(t, s.cfg, everything()))
	all := orders(4)
	contents := make([][]client.Object, len(all))
	for i := range all {
		remote, local := fmt.Sprintf("remote-%d", i), fmt.Sprintf("local-%d", i)
		b.secret(remote, config)
		account, binding := b.account(local, role)
		contents[i] = []client.Object{nil, b.secretOf(remote), account, binding}
		b.component(remote, there, from(remote))
		b.component(local, b.namespace, as("system:serviceaccount:"+b.namespace+":"+local))
	}
	for i := range all {
		b.ready(fmt.Sprintf("remote-%d", i))
		b.ready(fmt.Sprintf("local-%d", i))
	}
	ended := b.watchEnds(s, there)
	for i, order := range all {
		for _, which := range order {
			if which == 0 {
				b.delete(fmt.Sprintf("remote-%d", i))
				b.delete(fmt.Sprintf("local-%d", i))
			} else if err := b.admin.Delete(t.Context(), contents[i][which]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, order := range all {
		remote, local := fmt.Sprintf("remote-%d", i), fmt.Sprintf("local-%d", i)
		b.gone(remote)
		b.gone(local)
		testenv.Gone(t, b.admin, b.secretOf(remote), "deleted")
		if has(t, s.admin, there, remote) || has(t, b.admin, b.namespace, local) {
			t.Errorf("order %v: a dependent is left", order)
		}
		within(t, "the events", func() bool {
			ended.mu.Lock()
			defer ended.mu.Unlock()
			return ended.at["secret "+remote] > 0 && ended.at["component "+remote] > 0
		})
		ended.mu.Lock()
		// A Secret that is deleted after its component was released is not held any more.
		if secret, owner := ended.at["secret "+remote], ended.at["component "+remote]; secret > owner && slices.Index(order, 1) < slices.Index(order, 0) {
			t.Errorf("order %v: the component went at %d, before the Secret at %d", order, owner, secret)
		}
		ended.mu.Unlock()
	}
	ended.mu.Lock()
	defer ended.mu.Unlock()
	if len(ended.left) > 0 {
		t.Errorf("Secrets that went before the dependents: %v", ended.left)
	}
}

func secretHeld(t *testing.T, s *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	there := testenv.Namespace(t, s.cfg)
	config := kubeconfig(t, testenv.User(t, s.cfg, everything()))
	b.secret("one", config)
	b.secret("two", config)
	for _, name := range []string{"a", "b"} {
		b.component(name, there, from("one"))
		b.ready(name)
	}
	b.held("one")
	if n := b.secretWrites(); n != 1 {
		t.Errorf("%d writes of a Secret to which two components refer, want 1", n)
	}
	b.patchPlaced("a", `{"spec":{"kubeConfig":{"secretRef":{"name":"two"}}}}`)
	b.held("two")
	b.ready("a")
	b.held("one") // for b
	b.patchPlaced("b", `{"spec":{"kubeConfig":{"secretRef":{"name":"two"}}}}`)
	b.free("one")
	b.ready("b")
	if n := b.secretWrites(); n != 3 {
		t.Errorf("%d writes, want one for each Secret that is held and one for that which is released", n)
	}

	// What is left while no operator runs is released when it starts.
	b.stop()
	one := b.secretOf("one")
	if err := b.admin.Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+b.inUse()+`"]}}`))); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.free("one")

	b.delete("a")
	b.delete("b")
	b.gone("a")
	b.gone("b")
	b.free("two")
}

// secretUnprotected has an operator that may not patch Secrets.
func secretUnprotected(t *testing.T, s *site) {
	t.Helper()
	var admin client.WithWatch
	b := newPlacedBench(t, testenv.Start(t), func(b *placedBench) {
		admin = b.admin
		cfg := testenv.User(t, b.cfg,
			rbacv1.PolicyRule{APIGroups: []string{"tests.trimtab.dev", "events.k8s.io", ""}, Resources: []string{"placeds", "placeds/status", "events", "namespaces", "configmaps"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}})
		cfg.UserAgent = b.operator
		b.cfg, b.requests = testenv.Requests(cfg)
	})
	there := testenv.Namespace(t, s.cfg)
	b.secret("there", kubeconfig(t, testenv.User(t, s.cfg, everything())))
	b.component("a", there, from("there"))
	b.ready("a")
	testenv.Wait(t, admin, b.secretOf("there"), "left alone", func(s *corev1.Secret) bool { return len(s.Finalizers) == 0 })
	within(t, "the warning", func() bool {
		return slices.ContainsFunc(b.events(), func(note string) bool { return strings.Contains(note, "may not patch it") })
	})
	if n := b.secretWrites(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	b.delete("a")
	b.gone("a")
	if has(t, s.admin, there, "a") {
		t.Error("the dependent is left")
	}
}

// bindingGone deletes the role binding of the user who is impersonated.
func bindingGone(t *testing.T, _ *site) {
	t.Helper()
	b := newPlacedBench(t, testenv.Start(t))
	role := b.role()
	_, binding := b.account("sa", role)
	user := "system:serviceaccount:" + b.namespace + ":sa"
	b.component("a", b.namespace, as(user))
	b.ready("a")
	if err := b.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	b.delete("a")
	p := b.says("a", "create it again, or set DeleteAsOperator in the options of the operator")
	for _, word := range []string{"delete", "configmaps", user} {
		if !strings.Contains(p.Status.Message, word) {
			t.Errorf("the message %q does not name %q", p.Status.Message, word)
		}
	}
	if p.Status.State != component.StateError || !has(t, b.admin, b.namespace, "a") {
		t.Errorf("state %s, and the dependent may be gone", p.Status.State)
	}
	binding.ResourceVersion, binding.UID = "", ""
	if err := b.admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	b.gone("a")
	if has(t, b.admin, b.namespace, "a") {
		t.Error("the dependent is left")
	}
}

// events are the notes of the events in the namespace.
func (b *placedBench) events() []string {
	b.t.Helper()
	list := &eventsv1.EventList{}
	if err := b.admin.List(b.t.Context(), list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	var notes []string
	for i := range list.Items {
		notes = append(notes, list.Items[i].Note)
	}
	return notes
}

// TestKubeconfigChanged changes the kubeconfig of a component to one for another cluster. The dependents are not
// there: the Secret with the former kubeconfig is needed until it is decided what becomes of them.
func TestKubeconfigChanged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	namespaces := map[string]string{"the component is deleted": "default", "the component starts elsewhere": "kube-public"}
	for name, decide := range map[string]func(b *placedBench){
		"the component is deleted":       func(b *placedBench) { b.delete("a") },
		"the component starts elsewhere": func(*placedBench) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := testenv.Start(t)
			b := newPlacedBench(t, own)
			b.secret("former", kubeconfig(t, s.cfg))
			b.secret("own", kubeconfig(t, own))
			a := b.component("a", namespaces[name], from("former"))
			a = b.ready(a.Name)
			b.held("former")
			from("own")(&a.Spec)
			if err := b.admin.Update(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			b.says("a", "change it back")
			b.stop()
			b.start()
			b.component("c", b.namespace, from("own"))
			b.ready("c") // it has checked all Secrets of the namespace
			b.held("own")
			former := b.secretOf("former")
			if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(former), former); err != nil || !slices.Contains(former.Finalizers, b.inUse()) {
				t.Errorf("the Secret for the cluster of the dependents is not held any more: %v, %v", former.Finalizers, err)
			}
			decide(b)
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, b.operator+"/left-behind", a.Status.Cluster)
			if err := b.admin.Patch(t.Context(), a, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
			b.free("former")
		})
	}
}
