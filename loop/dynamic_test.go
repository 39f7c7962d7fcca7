package loop_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trigger"
)

// watches counts the watches that are open, by resource.
type watches struct {
	mu   sync.Mutex
	open map[string]int
}

func (w *watches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && req.URL.Query().Get("watch") != "" && resp.StatusCode == http.StatusOK {
			resource := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
			w.add(resource, 1)
			resp.Body = &openWatch{resp.Body, sync.OnceFunc(func() { w.add(resource, -1) })}
		}
		return resp, err
	})
}

func (w *watches) add(resource string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.open = map[string]int{}
	}
	w.open[resource] += n
}

// await waits until so many watches of a resource are open.
func (w *watches) await(t *testing.T, resource string, n int) {
	t.Helper()
	began := time.Now()
	defer func() {
		if took := time.Since(began); n == 0 && took >= time.Minute { // the default of Idle
			t.Errorf("the watches of %s ended after %s, want less than a minute", resource, took)
		}
	}()
	if !poll.Until(func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.open[resource] == n
	}) {
		t.Fatalf("watches of %s: %v, want %d", resource, w.open, n)
	}
}

type openWatch struct {
	io.ReadCloser
	closed func()
}

func (w *openWatch) Close() error {
	w.closed()
	return w.ReadCloser.Close()
}

// switching is a controller of Probes with one source, in one namespace.
func switching(t *testing.T, a *author, s trigger.Source[*probe.Probe], change func(*rest.Config) *rest.Config) (*controllerTest, *watches, map[string]healthz.Checker) {
	t.Helper()
	open, checks := &watches{}, map[string]healthz.Checker{}
	w := newNamespaceTest(t, open.wrap)
	if change != nil {
		w.cfg = change(w.cfg)
	}
	w.manager = func(m manager.Manager) manager.Manager { return checked{m, checks} }
	c := loop.New(a, options{Sources: []trigger.Source[*probe.Probe]{s}, Trace: a.sink()})
	c.Govern(loop.Terms{Namespaces: []string{w.namespace}})
	w.manage(c.SetupWithManager)
	w.create("a")
	w.await("a", "to be Ready", ready)
	w.drain(a)
	return w, open, checks
}

// TestDynamic proves that sources come and go while the controller runs.
func TestDynamic(t *testing.T) {
	t.Parallel()
	t.Run("a source is added and removed", func(t *testing.T) {
		t.Parallel()
		a, d := newAuthor(nil), &trigger.Dynamic[*probe.Probe]{Name: "switched"}
		w, open, checks := switching(t, a, d, nil)
		quiet := w.listen(a)
		settings := w.settings("settings", "a", "red")
		quiet(300 * time.Millisecond) // there is no source yet
		if err := d.Add("settings", settingsOfA()); err != nil {
			t.Fatal(err)
		}
		w.next(a) // what is there already concerns a
		if err := d.Add("settings", settingsOfA()); err == nil || !strings.Contains(err.Error(), `has a source "settings"; remove that first`) {
			t.Errorf("a second source of the same name: %v", err)
		}
		settings.Data["color"] = "blue"
		if err := w.admin.Update(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		w.next(a)
		var m corev1.ConfigMap
		if err := d.Get(t.Context(), client.ObjectKeyFromObject(settings), &m); err != nil || m.Data["color"] != "blue" {
			t.Errorf("read %v, %v, want blue", m.Data, err)
		}
		if err := d.Add("other", settingsOfA()); err != nil {
			t.Fatal(err)
		}
		w.next(a)
		open.await(t, "configmaps", 1) // one watch for both
		if err := checks["source-switched"](nil); err != nil {
			t.Errorf("readiness: %v", err)
		}
		works := func() float64 { return measured(t, "trimtab_source_up", "source", "switched-settings") }
		if works() != 1 {
			t.Error("no metric says that the source works")
		}
		for _, name := range []string{"settings", "other"} {
			if err := d.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		if works() != 0 {
			t.Error("a metric says that a source works that was removed")
		}
		open.await(t, "configmaps", 0)
		w.requests.Reset()
		w.drain(a)
		settings.Data["color"] = "green"
		quiet = w.listen(a)
		if err := w.admin.Update(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		quiet(500 * time.Millisecond)
		if after := w.requestsFor("configmaps"); len(after) > 0 {
			t.Errorf("requests after the last source was removed: %v", after)
		}
		if err := d.Remove("settings"); err == nil || !strings.Contains(err.Error(), `has no source "settings"`) {
			t.Errorf("removed twice: %v", err)
		}
		if err := d.Get(t.Context(), client.ObjectKeyFromObject(settings), &m); err == nil || !strings.Contains(err.Error(), "no source of trigger.Dynamic switched watches ConfigMap") {
			t.Errorf("read after the removal: %v", err)
		}
	})
	t.Run("a source that is removed wakes nobody while another watches the kind", func(t *testing.T) {
		t.Parallel()
		nobody := settingsOfA()
		nobody.Wakes = func(*corev1.ConfigMap) []types.NamespacedName { return nil }
		a := newAuthor(nil)
		d := &trigger.Dynamic[*probe.Probe]{Sources: map[string]trigger.Source[*probe.Probe]{"a": settingsOfA(), "nobody": nobody}}
		w, open, _ := switching(t, a, d, nil)
		w.settings("settings", "a", "red")
		w.next(a)
		if err := d.Remove("a"); err != nil {
			t.Fatal(err)
		}
		quiet := w.listen(a)
		w.settings("more", "a", "red")
		quiet(500 * time.Millisecond)
		open.await(t, "configmaps", 1)
	})
	t.Run("a source that is removed while an event is on its way wakes nobody", func(t *testing.T) {
		t.Parallel()
		asked, answer := make(chan struct{}), make(chan struct{})
		slow := settingsOfA()
		slow.Wakes = func(m *corev1.ConfigMap) []types.NamespacedName {
			if m.Name == "settings" {
				asked <- struct{}{}
				<-answer
			}
			return settingsOfA().Wakes(m)
		}
		a := newAuthor(nil)
		d := &trigger.Dynamic[*probe.Probe]{Sources: map[string]trigger.Source[*probe.Probe]{"slow": slow}}
		w, _, _ := switching(t, a, d, nil)
		w.settings("settings", "a", "red")
		<-asked
		if err := d.Remove("slow"); err != nil {
			t.Fatal(err)
		}
		close(answer)
		w.quiet(a, 500*time.Millisecond)
	})
	t.Run("a source sleeps until its CRD is there and after it is gone", func(t *testing.T) {
		t.Parallel()
		a := newAuthor(nil)
		name := testenv.Namespace(t, testenv.Start(t)) // a word that no other test has
		crd, thing := gadgets(name)
		d := &trigger.Dynamic[*probe.Probe]{Name: "later", Sources: map[string]trigger.Source[*probe.Probe]{"things": trigger.Kind[*probe.Probe, *unstructured.Unstructured]{
			Of: thing.DeepCopy(),
			Wakes: func(o *unstructured.Unstructured) []types.NamespacedName {
				return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: "a"}}
			},
		}}}
		w, open, checks := switching(t, a, d, nil)
		if !poll.Until(func() bool { return checks["source-later"](nil) == nil }) {
			t.Errorf("a kind that is not served makes the process unready: %v", checks["source-later"](nil))
		}
		if err := d.Get(t.Context(), types.NamespacedName{Name: "x"}, thing.DeepCopy()); !meta.IsNoMatchError(err) {
			t.Errorf("read of a kind that is not served: %v", err)
		}
		for range 2 { // once more after it was gone
			crd := crd.DeepCopy()
			testenv.Install(t, w.cfg, crd)
			o := thing.DeepCopy()
			o.SetNamespace(w.namespace)
			o.SetName("one")
			if err := w.admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.next(a)
			open.await(t, "gadgets", 1)
			open.await(t, "customresourcedefinitions", 0)
			w.drain(a)
			if err := w.admin.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.next(a)
			w.drain(a)
			if err := w.admin.Delete(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			w.next(a) // although no object goes with the CRD
			open.await(t, "gadgets", 0)
			if !poll.Until(func() bool {
				return meta.IsNoMatchError(d.Get(t.Context(), types.NamespacedName{Name: "x"}, thing.DeepCopy()))
			}) {
				t.Fatal("the source does not sleep")
			}
			if !poll.Until(func() bool {
				return apierrors.IsNotFound(w.admin.Get(t.Context(), types.NamespacedName{Name: crd.GetName()}, crd.DeepCopy()))
			}) {
				t.Fatal("the CRD stays")
			}
			w.drain(a)
		}
	})
	t.Run("a source without permission makes the process unready and stops nobody", func(t *testing.T) {
		t.Parallel()
		a, d := newAuthor(nil), &trigger.Dynamic[*probe.Probe]{Name: "some"}
		w, _, checks := switching(t, a, d, func(c *rest.Config) *rest.Config {
			c = rest.CopyConfig(c)
			c.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTrip(func(req *http.Request) (*http.Response, error) {
					if strings.HasSuffix(req.URL.Path, "/configmaps") {
						req = req.Clone(req.Context())
						req.Header.Set("Impersonate-User", "nobody")
					}
					return next.RoundTrip(req)
				})
			})
			return c
		})
		if err := d.Add("settings", settingsOfA()); err != nil {
			t.Fatal(err)
		}
		want := "settings: the operator may not list and watch ConfigMap; add it to Kinds of the trigger.Dynamic"
		if !poll.Until(func() bool {
			err := checks["source-some"](nil)
			return err != nil && strings.Contains(err.Error(), want)
		}) {
			t.Errorf("readiness: %v, want %q", checks["source-some"](nil), want)
		}
		if err := d.Err("settings"); err == nil || !strings.Contains(err.Error(), "may not list and watch ConfigMap") {
			t.Errorf("the source's error: %v", err)
		}
		w.resize(2)
		w.next(a)
		if err := d.Remove("settings"); err != nil {
			t.Fatal(err)
		}
		if err := checks["source-some"](nil); err != nil {
			t.Errorf("readiness after the removal: %v", err)
		}
	})
}

// gadgets are a CRD of a group of its own and an empty object of its kind.
func gadgets(word string) (crd, empty *unstructured.Unstructured) {
	group := word + ".example.org"
	crd = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	empty = &unstructured.Unstructured{}
	empty.SetAPIVersion(group + "/v1")
	empty.SetKind("Gadget")
	return crd, empty
}

// TestTracker proves that reading an object in a pass is what watches it.
func TestTracker(t *testing.T) {
	t.Parallel()
	t.Run("what a pass reads wakes it, and nothing else does", func(t *testing.T) {
		t.Parallel()
		tracker := &trigger.Tracker[*probe.Probe]{Name: "read", Kinds: []client.Object{&corev1.ConfigMap{}}, Idle: time.Millisecond}
		name, read := make(chan string, 1), make(chan string, 100)
		name <- "one"
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			current := <-name
			name <- current
			if current == "" {
				return loop.Done()
			}
			var m corev1.ConfigMap
			err := tracker.Get(ctx, r.Obj, types.NamespacedName{Namespace: r.Obj.Namespace, Name: current}, &m)
			if client.IgnoreNotFound(err) != nil {
				return loop.Fail(err)
			}
			read <- fmt.Sprint(current, "=", m.Data["color"])
			return loop.Done()
		})
		w, open, checks := switching(t, a, tracker, nil)
		expect := func(want string) {
			t.Helper()
			w.next(a)
			if got := <-read; got != want {
				t.Errorf("the pass read %q, want %q", got, want)
			}
		}
		refer := func(to string, size int) {
			<-name
			name <- to
			w.resize(size)
		}
		for len(read) > 0 {
			<-read
		}
		one := w.settings("one", "", "red")
		expect("one=red") // it appears
		one.Data["color"] = "blue"
		if err := w.admin.Update(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		expect("one=blue")
		quiet := w.listen(a)
		w.settings("two", "", "green")
		quiet(300 * time.Millisecond)
		refer("two", 2)
		expect("two=green")
		one.Data["color"] = "black"
		quiet = w.listen(a)
		if err := w.admin.Update(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		quiet(300 * time.Millisecond) // it is not read any more
		open.await(t, "configmaps", 1)
		if err := w.admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "two"}}); err != nil {
			t.Fatal(err)
		}
		expect("two=")
		if err := checks["source-read"](nil); err != nil {
			t.Errorf("readiness: %v", err)
		}
		refer("", 3)
		w.next(a)
		open.await(t, "configmaps", 0) // nobody reads the kind
		refer("one", 4)
		expect("one=black")
		open.await(t, "configmaps", 1)
		w.delete()
		open.await(t, "configmaps", 0) // the object is gone that was woken
	})
	t.Run("a kind that is served later wakes who asked for it", func(t *testing.T) {
		t.Parallel()
		tracker := &trigger.Tracker[*probe.Probe]{}
		crd, thing := gadgets(testenv.Namespace(t, testenv.Start(t)))
		outcomes := make(chan error, 100)
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			outcomes <- tracker.Get(ctx, r.Obj, types.NamespacedName{Namespace: r.Obj.Namespace, Name: "one"}, thing.DeepCopy())
			return loop.Done()
		})
		w, _, checks := switching(t, a, tracker, nil)
		if err := soon(t, outcomes); !meta.IsNoMatchError(err) {
			t.Errorf("before: %v", err)
		}
		for _, check := range checks {
			if err := check(nil); err != nil {
				t.Errorf("a kind that is not served makes the process unready: %v", err)
			}
		}
		testenv.Install(t, w.cfg, crd)
		if err := soon(t, outcomes); !apierrors.IsNotFound(err) {
			t.Errorf("the CRD is there: %v", err)
		}
		o := thing.DeepCopy()
		o.SetNamespace(w.namespace)
		o.SetName("one")
		if err := w.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := soon(t, outcomes); err != nil {
			t.Errorf("the object is there: %v", err)
		}
		if err := w.admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if err := soon(t, outcomes); !apierrors.IsNotFound(err) {
			t.Errorf("the object is gone: %v", err)
		}
		if err := w.admin.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		if err := soon(t, outcomes); !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			t.Errorf("the CRD is gone: %v", err)
		}
	})
}

// TestTrackerOfSecrets: nothing but metadata of Secrets is watched; their contents are read when they are asked for.
func TestTrackerOfSecrets(t *testing.T) {
	t.Parallel()
	tracker := &trigger.Tracker[*probe.Probe]{}
	read := make(chan string, 100)
	a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
		var s corev1.Secret
		if err := tracker.Get(ctx, r.Obj, types.NamespacedName{Namespace: r.Obj.Namespace, Name: "key"}, &s); client.IgnoreNotFound(err) != nil {
			return loop.Fail(err)
		}
		read <- string(s.Data["key"])
		return loop.Done()
	})
	w, open, _ := switching(t, a, tracker, nil)
	open.await(t, "secrets", 1)
	if got := soon(t, read); got != "" {
		t.Errorf("before there is a Secret: %q", got)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "key"}, Data: map[string][]byte{"key": []byte("first")}}
	if err := w.admin.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := soon(t, read); got != "first" {
		t.Errorf("it appeared: %q", got)
	}
	s.Data["key"] = []byte("second")
	if err := w.admin.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if got := soon(t, read); got != "second" {
		t.Errorf("it changed: %q", got)
	}
	gets := w.requests.Select(func(r testenv.Request) bool { return r.Resource == "secrets" && r.Verb == "get" })
	if len(gets) < 3 {
		t.Errorf("%d reads of the Secret past the cache, want one in each pass", len(gets))
	}
}

// TestTrackerOfSecretsMeanwhile: a Secret that appears, changes or is deleted while the answer of the API server is on its way
// wakes whoever asked for it.
func TestTrackerOfSecretsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exists bool
		change func(client.Client, context.Context, *corev1.Secret) error
		want   [2]string
	}{
		"it appears": {false, func(c client.Client, ctx context.Context, s *corev1.Secret) error { return c.Create(ctx, s) }, [2]string{"", "new"}},
		"it changes": {true, func(c client.Client, ctx context.Context, s *corev1.Secret) error { return c.Update(ctx, s) }, [2]string{"old", "new"}},
		"it goes":    {true, func(c client.Client, ctx context.Context, s *corev1.Secret) error { return c.Delete(ctx, s) }, [2]string{"old", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracker, read, asks := &trigger.Tracker[*probe.Probe]{}, make(chan string, 100), atomic.Bool{}
			get := func(ctx context.Context, r *run, name string) (string, error) {
				var s corev1.Secret
				err := tracker.Get(ctx, r.Obj, types.NamespacedName{Namespace: r.Obj.Namespace, Name: name}, &s)
				return string(s.Data["key"]), client.IgnoreNotFound(err)
			}
			a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
				if _, err := get(ctx, r, "other"); err != nil || !asks.Load() {
					return loop.Done()
				}
				value, err := get(ctx, r, "key")
				if err != nil {
					return loop.Fail(err)
				}
				read <- value
				return loop.Done()
			})
			var answered atomic.Pointer[func()] // called once, between the answer of the API server and its receipt
			w, open, _ := switching(t, a, tracker, func(c *rest.Config) *rest.Config {
				c = rest.CopyConfig(c)
				c.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return roundTrip(func(req *http.Request) (*http.Response, error) {
						resp, err := next.RoundTrip(req)
						if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/secrets/key") {
							if f := answered.Swap(nil); f != nil {
								(*f)()
							}
						}
						return resp, err
					})
				})
				return c
			})
			open.await(t, "secrets", 1)
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "key"}, Data: map[string][]byte{"key": []byte("old")}}
			if tt.exists {
				if err := w.admin.Create(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			m := &metav1.PartialObjectMetadata{}
			m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			shown := func(version string) { // waits until the watch has shown a version
				other := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}}
				poll.Until(func() bool {
					err := tracker.Get(t.Context(), other, client.ObjectKeyFromObject(s), m)
					return err == nil && m.ResourceVersion == version || version == "" && apierrors.IsNotFound(err)
				})
			}
			shown(s.ResourceVersion)
			change := func() {
				s.Data["key"] = []byte("new")
				if err := tt.change(w.admin, t.Context(), s); err != nil {
					t.Error(err)
				}
				if name == "it goes" {
					s.ResourceVersion = ""
				}
				shown(s.ResourceVersion)
			}
			answered.Store(&change)
			asks.Store(true)
			w.resize(2)
			if got := [2]string{soon(t, read), soon(t, read)}; got != tt.want {
				t.Errorf("read %q, want %q", got, tt.want)
			}
		})
	}
}

// TestTrackerOfMany: workers track at the same time, each object is woken by its own, and after a restart again.
func TestTrackerOfMany(t *testing.T) {
	t.Parallel()
	const many = 20
	tracker := &trigger.Tracker[*probe.Probe]{}
	reconcile := func(tracker *trigger.Tracker[*probe.Probe]) func(context.Context, *run) loop.Outcome {
		return func(ctx context.Context, r *run) loop.Outcome {
			var m corev1.ConfigMap
			key := client.ObjectKeyFromObject(r.Obj)
			if err := tracker.Get(ctx, r.Obj, key, &m); client.IgnoreNotFound(err) != nil {
				return loop.Fail(err)
			}
			return loop.Done()
		}
	}
	a := newAuthor(reconcile(tracker))
	w, open, _ := switching(t, a, tracker, nil)
	for n := range many {
		w.create(fmt.Sprint("p", n))
	}
	for n := range many {
		w.await(fmt.Sprint("p", n), "to be Ready", ready)
	}
	open.await(t, "configmaps", 1)
	w.drain(a)
	for n := range many {
		w.settings(fmt.Sprint("p", n), "", "red")
	}
	woken := map[string]bool{}
	for len(woken) < many {
		woken[w.next(a).Name] = true
	}
	w.stop()
	again := &trigger.Tracker[*probe.Probe]{}
	b := newAuthor(reconcile(again))
	w.start(b, options{Sources: []trigger.Source[*probe.Probe]{again}})
	for seen := map[string]bool{}; len(seen) < many+1; {
		seen[w.next(b).Name] = true
	}
	w.drain(b)
	if err := w.admin.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p7"}}); err != nil {
		t.Fatal(err)
	}
	if c := w.next(b); c.Name != "p7" {
		t.Errorf("woken after the restart: %s, want p7", c.Name)
	}
}

// soon receives what a pass sends.
func soon[V any](t *testing.T, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(poll.Patience):
		t.Fatal("no pass")
		panic("unreachable")
	}
}
