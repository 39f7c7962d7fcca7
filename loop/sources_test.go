package loop_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
	"github.com/trimtab-dev/trimtab/trigger"
)

// TestSources proves what wakes an object besides itself (Java Operator SDK, event sources).
func TestSources(t *testing.T) {
	t.Parallel()
	t.Run("002-57 an informer of another kind wakes, and is read without a request", func(t *testing.T) {
		t.Parallel()
		read := make(chan string, 100)
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			var m corev1.ConfigMap
			if err := r.Client().Get(ctx, types.NamespacedName{Namespace: r.Obj.Namespace, Name: "settings"}, &m); err != nil {
				return loop.Fail(err)
			}
			read <- m.Data["color"]
			return loop.Done()
		})
		o := options{Sources: []trigger.Source[*probe.Probe]{settingsOfA()}}
		w := newControllerTest(t, a, o)
		settings := w.settings("settings", "a", "red")
		w.create("a")
		w.await("a", "to be Ready", ready)
		w.drain(a)
		for len(read) > 0 {
			<-read
		}
		requests := len(w.requestsFor("configmaps"))
		settings.Data["color"] = "blue"
		if err := w.admin.Update(t.Context(), settings); err != nil {
			t.Fatal(err)
		}
		if c := w.next(a); c.Name != "a" {
			t.Errorf("woken: %s, want a", c.Name)
		}
		if got := <-read; got != "blue" {
			t.Errorf("the pass that the change caused read %q, want blue", got)
		}
		w.settings("unrelated", "", "red")
		w.resize(2) // whatever the unrelated one causes comes before this
		if c := w.next(a); c.Generation != 2 {
			t.Errorf("an object that concerns nobody caused a pass")
		}
		if after := w.requestsFor("configmaps"); len(after) != requests {
			t.Errorf("reading what the source watches cost requests: %v", after[requests:])
		}
		if got := verbsFor(t, o, "ConfigMap"); got != "get,list,watch" {
			t.Errorf("the operator may %s ConfigMaps, want get,list,watch", got)
		}
	})
	t.Run("002-59 the controller's own objects are read without a request", func(t *testing.T) {
		t.Parallel()
		found := make(chan int, 100)
		a := newAuthor(func(ctx context.Context, r *run) loop.Outcome {
			var all probe.ProbeList
			if err := r.Client().List(ctx, &all, client.InNamespace(r.Obj.Namespace)); err != nil {
				return loop.Fail(err)
			}
			found <- len(all.Items)
			return loop.Done()
		})
		w := newControllerTest(t, a, options{})
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
			w.await(name, "to be Ready", ready)
		}
		w.drain(a)
		for len(found) > 0 {
			<-found
		}
		reads := func() []testenv.Request {
			return w.requests.Select(func(r testenv.Request) bool { return r.Resource == "probes" && !r.IsWrite() })
		}
		before := len(reads())
		for size := range 3 {
			w.resize(size + 10)
			w.next(a)
			if got := <-found; got != 3 {
				t.Errorf("found %d objects, want 3", got)
			}
		}
		if after := reads(); len(after) != before {
			t.Errorf("listing the controller's own objects cost requests: %v", after[before:])
		}
	})
}

// checked is a manager whose readiness a test asks for.
type checked struct {
	manager.Manager
	ready map[string]healthz.Checker
}

func (c checked) AddReadyzCheck(name string, check healthz.Checker) error {
	c.ready[name] = check
	return nil
}

// TestOtherCluster: objects of another cluster wake those of this one, and nothing here waits for that cluster.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	type setUp struct {
		w     *controllerTest
		a     *author
		ready map[string]healthz.Checker
	}
	with := func(t *testing.T, change func(*rest.Config)) (setUp, string) {
		t.Helper()
		a := newAuthor(nil)
		w := newNamespaceTest(t)
		other := rest.CopyConfig(w.cfg)
		there := testenv.Namespace(t, w.cfg)
		change(other)
		c, err := cluster.New(other, func(o *cluster.Options) {
			o.Scheme, o.Logger = scheme(t), logr.Discard()
			o.Cache.DefaultNamespaces = map[string]cache.Config{there: {}}
		})
		if err != nil {
			t.Fatal(err)
		}
		s := settingsOfA()
		s.Name, s.InCluster = "theirs", c
		key := types.NamespacedName{Namespace: w.namespace, Name: "a"}
		s.Wakes = func(m *corev1.ConfigMap) []types.NamespacedName {
			if m.Labels["for"] == "" { // such as kube-root-ca.crt, which a controller creates sooner or later
				return nil
			}
			return []types.NamespacedName{key}
		}
		all := map[string]healthz.Checker{}
		w.manager = func(m manager.Manager) manager.Manager {
			if err := m.Add(c); err != nil {
				t.Fatal(err)
			}
			return checked{m, all}
		}
		o := options{Sources: []trigger.Source[*probe.Probe]{s}}
		w.start(a, o)
		if verbs := verbsFor(t, o, "ConfigMap"); verbs != "" {
			t.Errorf("a source in another cluster has the operator %s ConfigMaps in its own", verbs)
		}
		w.create("a")
		w.await("a", "to be Ready", ready)
		return setUp{w, a, all}, there
	}
	t.Run("a change there causes a call here", func(t *testing.T) {
		t.Parallel()
		s, there := with(t, func(*rest.Config) {})
		if !poll.Until(func() bool { return s.ready["source-theirs"](nil) == nil }) {
			t.Fatalf("the other cluster has not synced: %v", s.ready["source-theirs"](nil))
		}
		s.w.drain(s.a)
		quiet := s.w.listen(s.a)
		s.w.settings("settings", "a", "red")
		quiet(500 * time.Millisecond) // this cluster is not the one that the source watches
		s.w.namespace = there
		s.w.settings("settings", "a", "red")
		if c := s.w.next(s.a); c.Name != "a" {
			t.Errorf("woken: %s, want a", c.Name)
		}
	})
	t.Run("a cluster that is away does not hold up this one, and readiness tells", func(t *testing.T) {
		t.Parallel()
		s, _ := with(t, func(c *rest.Config) { c.Host, c.Dial = "https://127.0.0.1:1", nil })
		err := s.ready["source-theirs"](nil)
		if err == nil || !strings.Contains(err.Error(), "has not been read completely yet") {
			t.Errorf("readiness: %v", err)
		}
	})
}

// settingsOfA is a source that wakes the object named in the label "for" of a ConfigMap.
func settingsOfA() trigger.Kind[*probe.Probe, *corev1.ConfigMap] {
	return trigger.Kind[*probe.Probe, *corev1.ConfigMap]{Wakes: func(m *corev1.ConfigMap) []types.NamespacedName {
		if name := m.Labels["for"]; name != "" {
			return []types.NamespacedName{{Namespace: m.Namespace, Name: name}}
		}
		return nil
	}}
}

// settings creates a ConfigMap for an object.
func (w *controllerTest) settings(name, of, color string) *corev1.ConfigMap {
	w.t.Helper()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"for": of}},
		Data:       map[string]string{"color": color},
	}
	if err := w.admin.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func (w *controllerTest) requestsFor(resource string) []testenv.Request {
	return w.requests.Select(func(r testenv.Request) bool { return r.Resource == resource })
}

// verbsFor returns what a controller with these options may do with a kind.
func verbsFor(t *testing.T, o options, kind string) string {
	t.Helper()
	needs, err := loop.New(newAuthor(nil), o).Needs(scheme(t))
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{}
	for _, n := range needs {
		for _, v := range n.Verbs {
			may[v] = may[v] || n.Kind == kind
		}
	}
	var verbs []string
	for _, v := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		if may[v] {
			verbs = append(verbs, v)
		}
	}
	return strings.Join(verbs, ",")
}

// TestSourcesRefused: a source that could wake nobody is not set up, and its error says what is missing.
func TestSourcesRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		source trigger.Source[*probe.Probe]
		want   string
	}{
		{trigger.Kind[*probe.Probe, *corev1.ConfigMap]{}, "a trigger.Kind needs Wakes"},
		{trigger.Kind[*probe.Probe, *unstructured.Unstructured]{
			Wakes: func(*unstructured.Unstructured) []types.NamespacedName { return nil },
		}, "Of of a trigger.Kind is a *unstructured.Unstructured without apiVersion and kind; set both"},
		{trigger.Owned[*probe.Probe]{Of: &metav1.PartialObjectMetadata{}}, "Of of a trigger.Owned is a *v1.PartialObjectMetadata without"},
		{trigger.Reference[*probe.Probe]{Names: func(*probe.Probe) []types.NamespacedName { return nil }}, "To of a trigger.Reference is nil; it is an empty object"},
		{&trigger.Tracker[*probe.Probe]{Kinds: []client.Object{(*corev1.ConfigMap)(nil)}}, "number 0 of the Kinds of a trigger.Tracker is nil"},
		{&trigger.Dynamic[*probe.Probe]{Kinds: []client.Object{nil}}, "number 0 of the Kinds of a trigger.Dynamic is nil"},
		{&trigger.Dynamic[*probe.Probe]{Sources: map[string]trigger.Source[*probe.Probe]{"a": (*trigger.Owned[*probe.Probe])(nil)}}, `source "a" of a trigger.Dynamic is nil`},
	} {
		o := options{Sources: []trigger.Source[*probe.Probe]{tt.source}}
		if _, err := loop.New(newAuthor(nil), o).Needs(scheme(t)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%T: got %v, want an error with %q", tt.source, err, tt.want)
		}
	}
}
