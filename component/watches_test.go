package component_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// openWatches counts the watches of a client that are open, by the end of their path.
type openWatches struct {
	mu   sync.Mutex
	open map[string]int
}

func (o *openWatches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		ofDependents := !strings.HasSuffix(req.URL.Query().Get("labelSelector"), "/inventory-of")
		if err == nil && req.URL.Query().Get("watch") != "" && ofDependents && resp.StatusCode == http.StatusOK {
			_, resource, _ := strings.Cut(req.URL.Path, "/v1/")
			o.count(resource, 1)
			resp.Body = &countedBody{ReadCloser: resp.Body, closed: sync.OnceFunc(func() { o.count(resource, -1) })}
		}
		return resp, err
	})
}

func (o *openWatches) count(resource string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == nil {
		o.open = map[string]int{}
	}
	o.open[resource] += by
}

func (o *openWatches) of(resource string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[resource]
}

type countedBody struct {
	io.ReadCloser

	closed func()
}

func (b *countedBody) Close() error {
	b.closed()
	return b.ReadCloser.Close()
}

// TestWatchesEnd: a kind is watched as long as components have dependents of it, and again when they have
// some again.
func TestWatchesEnd(t *testing.T) {
	t.Parallel()
	o := &openWatches{}
	b := prepareBench(t)
	b.cfg = rest.CopyConfig(b.cfg)
	b.cfg.Wrap(o.wrap)
	b.tune = func(c *component.Controller[*bundle.Bundle]) { c.EndWatchesAfter(50 * time.Millisecond) }
	b.start()
	limits := &corev1.LimitRange{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"}, ObjectMeta: metav1.ObjectMeta{Name: "l"}}
	b.create(configMap("one", "1"), configMap("two", "1"), configMap("three", "1"), limits)
	b.ready()
	if maps, ranges := o.of("configmaps"), o.of("limitranges"); maps != 1 || ranges != 1 {
		t.Fatalf("%d watches of ConfigMaps, %d of LimitRanges, want one of each", maps, ranges)
	}
	b.change(configMap("one", "1"), configMap("two", "1"), configMap("three", "1"))
	b.ready()
	soon(t, "the end of the watch of LimitRanges", func() bool { return o.of("limitranges") == 0 })
	if n := o.of("configmaps"); n != 1 {
		t.Errorf("%d watches of ConfigMaps, want one", n)
	}
	b.change(configMap("one", "1"), configMap("two", "1"), configMap("three", "1"), limits)
	b.ready()
	b.requests.Reset()
	b.patch("v1", "LimitRange", "l", `{"metadata":{"annotations":{"`+b.operator+`/digest":"edited"}}}`)
	within(t, "the correction", func() bool { return len(b.requests.Writes("limitranges", b.namespace, "l")) == 1 })
	b.delete()
	b.gone()
	soon(t, "the end of all watches of dependents", func() bool { return o.of("limitranges")+o.of("configmaps") == 0 })
}

// TestLookup: what a renderer looks up is tracked.
func TestLookup(t *testing.T) {
	t.Parallel()
	t.Run("B-21 renderings are repeated when what was looked up changed", lookups)
}

func lookups(t *testing.T) {
	t.Helper()
	var renderings atomic.Int64
	passes := make(chan struct{})
	b := prepareBench(t, func(o *options) { o.RequeueInterval = time.Millisecond })
	b.renderer = versioned{func(ctx context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		renderings.Add(1)
		m := &corev1.ConfigMap{}
		value := "none"
		if err := component.Lookup(ctx, client.ObjectKey{Namespace: r.Namespace}, m); err == nil || !strings.Contains(err.Error(), "LookupList") {
			t.Errorf("without a name: %v, want an error that says what reads all", err)
		}
		err := component.Lookup(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "other"}, m)
		if err == nil {
			value = m.Data["value"]
		}
		return component.Objects(configMap("one", value)), client.IgnoreNotFound(err)
	}, func() string {
		select {
		case passes <- struct{}{}:
		default:
		}
		return "1"
	}}
	b.start()
	wait := func(n int) {
		for range n {
			<-passes
		}
	}
	value := func(want string) {
		t.Helper()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "one"}}
		testenv.Wait(t, b.admin, m, want, func(m *corev1.ConfigMap) bool { return m.Data["value"] == want })
		b.ready()
		wait(5)
	}
	// rendered returns how often it was rendered since the last call.
	last := int64(0)
	rendered := func() int64 {
		now := renderings.Load()
		defer func() { last = now }()
		return now - last
	}
	b.create()
	value("none")
	rendered()
	t.Run("1,000 timer passes", func(t *testing.T) {
		b.requests.Reset()
		wait(1000)
		if n := rendered(); n != 0 {
			t.Errorf("%d renderings, want none", n)
		}
		b.quiet()
	})
	other := configMap("other", "1")
	other.Namespace = b.namespace
	for _, step := range []struct {
		name, want string
		do         func() error
		renderings int64
	}{
		{"created", "1", func() error { return b.admin.Create(t.Context(), other.DeepCopy()) }, 1},
		{"changed", "2", func() error {
			return b.admin.Patch(t.Context(), other.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"2"}}`)))
		}, 1},
		{"written by another without a change of the content", "2", func() error {
			body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"},"data":{"value":"2"}}`
			return b.admin.Patch(t.Context(), other.DeepCopy(), client.RawPatch("application/apply-patch+yaml", []byte(body)), client.FieldOwner("another"), client.ForceOwnership)
		}, 0},
		{"deleted", "none", func() error { return b.admin.Delete(t.Context(), other.DeepCopy()) }, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			b.requests.Reset()
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			value(step.want)
			if step.renderings == 0 {
				within(t, "the operator to look", func() bool {
					return len(b.requests.Select(func(r testenv.Request) bool { return r.Verb == "get" && r.Name == "other" })) > 0
				})
				wait(5)
			}
			if n := rendered(); n != step.renderings {
				t.Errorf("%d renderings, want %d", n, step.renderings)
			}
		})
	}
}

// TestNarrowUser: who may watch one namespace only can be impersonated.
func TestNarrowUser(t *testing.T) {
	t.Parallel()
	b := newPlacedBench(t, testenv.Start(t))
	other := testenv.Namespace(t, b.cfg)
	user := "system:serviceaccount:" + b.namespace + ":narrow"
	allow := func(namespace string) {
		t.Helper()
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "narrow"}
		role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "narrow"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: b.namespace, Name: "narrow"}},
		}
		for _, obj := range []client.Object{role, binding} {
			if err := b.admin.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	allow(b.namespace)
	b.component("a", b.namespace, as(user))
	b.ready("a")
	b.requests.Reset()
	corrects := func(namespace, name string) {
		t.Helper()
		m := live(t, b.admin, namespace, name)
		m.Data["value"] = "edited"
		if err := b.admin.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		testenv.Wait(t, b.admin, m, "corrected", func(m *corev1.ConfigMap) bool { return m.Data["value"] == "1" })
	}
	corrects(b.namespace, "a")

	b.component("elsewhere", other, as(user))
	p := b.await("elsewhere", "refused", func(p *placed) bool { return p.Status.State == component.StateError })
	for _, word := range []string{"list", "configmaps", user, other} {
		if !strings.Contains(p.Status.Message, word) {
			t.Errorf("the message %q does not name %q", p.Status.Message, word)
		}
	}
	corrects(b.namespace, "a") // which is not affected
	allow(other)
	b.ready("elsewhere")
	corrects(other, "elsewhere")
	for _, name := range []string{"a", "elsewhere"} {
		b.delete(name)
		b.gone(name)
	}
	if has(t, b.admin, b.namespace, "a") || has(t, b.admin, other, "elsewhere") {
		t.Error("a dependent is left")
	}
}
