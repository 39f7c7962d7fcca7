package component_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/node"
	"github.com/trimtab-dev/trimtab/testenv"
)

// selling gives an operator a driver of the vendor's things.
func selling(v *vendor) func(*options) {
	return func(o *options) {
		o.Scheme = &runtime.SchemeBuilder{thing.AddToScheme}
		o.Drivers = []node.Driver{external.Nodes(things{}, v.sells())}
	}
}

// database is a thing that a component has.
func database(name string, size int) *thing.Thing {
	return &thing.Thing{
		TypeMeta:   metav1.TypeMeta{APIVersion: thing.GroupVersion.String(), Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: thing.Spec{Size: size},
	}
}

// shopWithDatabase renders a namespace, a Secret with the credentials of a database, the database, which gets its
// password from there, a Secret with the address of the database, and a Deployment.
func shopWithDatabase(place, password string) component.RenderFunc[*bundle.Bundle] {
	return func(context.Context, component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		s.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}})
		db := database("db", 3)
		db.Namespace = place
		credentials := s.Add(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "credentials"}, StringData: map[string]string{"password": password},
		})
		secret := component.From(&s, s.Add(db).After(credentials), func(db *thing.Thing) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "db"}, StringData: map[string]string{"host": db.Status.Host}}
		})
		web := deployment("web", "web")
		web.Namespace, web.Spec.Replicas = place, new(int32(0))
		s.Add(web).After(secret)
		return s, nil
	}
}

// TestB26 observes a component that is a namespace, an external database, a Secret and a Deployment.
func TestB26(t *testing.T) {
	t.Parallel()
	t.Run("B-26 a database outside is a dependent", func(t *testing.T) {
		v := &vendor{things: map[string]sold{}}
		b := prepareBench(t, selling(v))
		place := b.namespace + "-shop"
		name := place + ".db"
		password := rand.Text()
		v.password = func(obj *thing.Thing) string { // as a driver does that is given a reader
			var s corev1.Secret
			if err := b.admin.Get(t.Context(), client.ObjectKey{Namespace: obj.Namespace, Name: "credentials"}, &s); err != nil {
				t.Errorf("the database is created before its credentials: %v", err)
			}
			return string(s.Data["password"])
		}
		b.renderer = shopWithDatabase(place, password)
		b.start()
		b.create()
		b.ready()
		v.with(func() {
			if v.things[name].password != password {
				t.Error("the database does not have the password of the Secret")
			}
		})
		if text, err := json.Marshal(b.ready()); err != nil || strings.Contains(string(text), password) {
			t.Errorf("the component contains the password: %v", err)
		}

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "db"}}
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "web"}}
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: place}}
		get := func(o client.Object) {
			t.Helper()
			if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
		}
		get(secret)
		if got, want := string(secret.Data["host"]), "db.vendor.example.org"; got != want {
			t.Errorf("the Secret has host %q, want %q", got, want)
		}

		// Drift in each of the four.
		get(space)
		space.Labels = nil
		if err := b.admin.Update(t.Context(), space); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, space, "owned again", func(n *corev1.Namespace) bool { return n.Labels[b.operator+"/owner-id"] != "" })
		secret.Data["host"] = []byte("elsewhere")
		if err := b.admin.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, secret, "corrected", func(s *corev1.Secret) bool { return string(s.Data["host"]) == "db.vendor.example.org" })
		get(web)
		web.Spec.Template.Spec.Containers[0].Image = "other"
		if err := b.admin.Update(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, web, "corrected", func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "web" })
		credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "credentials"}}
		get(credentials)
		credentials.Data["password"] = []byte("other")
		if err := b.admin.Update(t.Context(), credentials); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, credentials, "corrected", func(s *corev1.Secret) bool { return string(s.Data["password"]) == password })
		v.with(func() { v.things[name] = sold{size: 1, tags: v.things[name].tags} })
		b.fence() // has the database observed
		v.with(func() {
			if got := v.things[name].size; got != 3 {
				t.Errorf("the database has size %d, want 3", got)
			}
		})

		// Deletion in reverse order. What the operator has deleted when the database goes:
		var deleted []string
		v.with(func() {
			v.called = func(call string) error {
				if strings.HasPrefix(call, "delete ") {
					for _, r := range b.requests.Select(func(r testenv.Request) bool { return r.Verb == "delete" }) {
						deleted = append(deleted, r.Resource+"/"+r.Name)
					}
				}
				return nil
			}
		})
		b.delete()
		b.gone()
		if want := []string{"deployments/web", "secrets/db"}; !slices.Equal(deleted, want) {
			t.Errorf("when the database is deleted, %q are, want %q", deleted, want)
		}
		want := []string{"create " + name, "update " + name, "delete " + name}
		if diff := cmp.Diff(want, v.calls("create", "update", "delete")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if left := v.names(); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	})
}

// TestNodeChanges: the manifest of an external resource changes, and then it is no longer rendered.
func TestNodeChanges(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	name := b.namespace + ".db"
	b.create(database("db", 3), configMap("a", "1"))
	b.ready()
	b.change(database("db", 4), configMap("a", "1"))
	b.ready()
	b.change(configMap("a", "1"))
	b.ready()
	want := []string{"create " + name, "update " + name, "delete " + name}
	if diff := cmp.Diff(want, v.calls("create", "update", "delete")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestNodeIsQuiet: what happens to Kubernetes objects calls no external API, and a restart does only to observe.
func TestNodeIsQuiet(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	b.create(database("db", 3), configMap("a", "1"))
	before := b.ready()
	v.with(func() { v.log = nil })
	b.patch("v1", "ConfigMap", "a", `{"data":{"value":"2"}}`)
	testenv.Wait(t, b.admin, b.live("a"), "corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "1" })
	b.change(database("db", 3), configMap("a", "2"))
	b.ready()
	if got := v.calls(""); len(got) > 0 {
		t.Errorf("the operator called %q for a change of a ConfigMap", got)
	}
	b.stop()
	b.requests.Reset()
	b.start()
	b.fence()
	if got := v.calls("create", "update", "delete"); len(got) > 0 || len(v.calls("observe")) == 0 {
		t.Errorf("after a restart the operator called %q, want that it only observes", v.calls(""))
	}
	if now := b.ready(); cmp.Diff(before.Status.Inventory[1].Record, now.Status.Inventory[1].Record) != "" {
		t.Errorf("the record was %s and is %s", before.Status.Inventory[1].Record, now.Status.Inventory[1].Record)
	}
}

// TestNodeFails: what the external API says is in the status of the component, and is tried again.
func TestNodeFails(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}, called: func(call string) error {
		if strings.HasPrefix(call, "create") {
			return &external.Error{Class: external.ClassTransient, Err: errors.New("the vendor is on holiday")}
		}
		return nil
	}}
	b := newBench(t, selling(v))
	b.create(database("db", 3), configMap("a", "1"))
	b.await("to fail", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "the vendor is on holiday") })
	v.with(func() { v.called = nil })
	b.ready()
}

// TestNodeWithoutDriver: an operator that has lost a driver neither deletes nor forgets.
func TestNodeWithoutDriver(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := newBench(t, selling(v))
	b.create(database("db", 3), configMap("a", "1"))
	b.ready()
	b.stop()
	drivers := b.options.Drivers
	b.options.Drivers = nil
	b.start()
	b.delete()
	b.await("to say so", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "has no driver for its kind") })
	if len(v.names()) != 1 {
		t.Error("the database is gone")
	}
	b.stop()
	b.options.Drivers = drivers
	b.start()
	b.gone()
	if left := v.names(); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// TestNodeIsMadeFrom: what is made from an external resource stays as it is while that is not ready, and nothing
// is pruned before it was ready once.
func TestNodeIsMadeFrom(t *testing.T) {
	t.Parallel()
	v := &vendor{things: map[string]sold{}}
	b := prepareBench(t, selling(v))
	b.options.PruneLimit = 1
	b.renderer = component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		objects, err := r.Component.Render()
		s := component.Objects(objects...)
		db := s.Add(database("db", 3))
		component.From(&s, db, func(db *thing.Thing) client.Object { return configMap("made", db.Status.Host) })
		return s, err
	})
	b.start()
	v.with(func() {
		v.called = func(call string) error {
			if strings.HasPrefix(call, "create") {
				return &external.Error{Class: external.ClassTransient, Err: errors.New("not yet")}
			}
			return nil
		}
	})
	b.create(configMap("a", "1"), configMap("b", "1"))
	b.await("to fail", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "not yet") })
	b.change(configMap("a", "2"))
	testenv.Wait(t, b.admin, b.live("a"), "changed", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "2" })
	b.fence()
	b.live("b") // is not pruned
	v.with(func() { v.called = nil })
	b.ready()
	testenv.Gone(t, b.admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "b"}}, "pruned")
	made := b.live("made")
	if made.Data["value"] != "db.vendor.example.org" {
		t.Errorf("made from %q", made.Data["value"])
	}
	v.with(func() {
		v.called = func(string) error {
			return &external.Error{Class: external.ClassTransient, Err: errors.New("away")}
		}
	})
	b.fence()
	b.await("to say so", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "away") })
	if now := b.live("made"); now.UID != made.UID || now.ResourceVersion != made.ResourceVersion {
		t.Error("what is made from the database was written while the database was away")
	}
	v.with(func() { v.called = nil })
	b.ready()
	b.loseStatus() // and with it what is known of the database
	b.start()
	b.ready()
	if now := b.live("made"); now.UID != made.UID {
		t.Error("what is made from the database was pruned before the database was known to be ready")
	}
}

// TestFunctions: a function is called once for a digest, a gate until it opens.
func TestFunctions(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string
	open, broken := false, true
	b := prepareBench(t)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		digest := fmt.Sprint(len(r.Component.Spec.Objects))
		gate := s.Gate("license", time.Second, func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if !open {
				return "the license is not valid yet", nil
			}
			return "", nil
		})
		migrate := s.Do("migrate", digest, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, digest)
			if broken {
				return errors.New("no connection")
			}
			return nil
		}).After(gate)
		s.Add(configMap("a", digest)).After(migrate)
		return s, nil
	})
	b.start()
	b.create()
	b.await("to wait", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "the license is not valid yet") })
	with := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
	with(func() { open = true })
	b.await("to fail", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "no connection") })
	with(func() { broken, calls = false, nil })
	b.ready()
	with(func() {
		if !slices.Equal(calls, []string{"0"}) {
			t.Errorf("called for %q, want once", calls)
		}
	})
	b.live("a")
	b.stop()
	b.start()
	b.fence()
	b.change(configMap("x", ""))
	b.ready()
	with(func() {
		if !slices.Equal(calls, []string{"0", "1"}) {
			t.Errorf("called for %q, want once for each digest", calls)
		}
	})
	b.delete()
	b.gone()
}
