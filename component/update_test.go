package component_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

// data is a ConfigMap with pairs of keys and values.
func data(name string, pairs ...string) *corev1.ConfigMap {
	m := configMap(name, "")
	m.Data = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m.Data[pairs[i]] = pairs[i+1]
	}
	return m
}

// policy sets an annotation of the operator.
func policy[T client.Object](b *bench, o T, name, value string) T {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[b.key(name)] = value
	o.SetAnnotations(annotations)
	return o
}

// merge patches an object as a client of a field manager does.
func (b *bench) merge(manager string, o client.Object, body string) {
	b.t.Helper()
	o.SetNamespace(b.namespace)
	if err := b.as(manager).Patch(b.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		b.t.Fatal(err)
	}
}

// before calls f before the first request of the operator that fits is sent.
func (b *bench) before(fits func(*http.Request) bool, f func()) {
	once := sync.OnceFunc(f)
	b.cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if fits(r) {
				once()
			}
			return next.RoundTrip(r)
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func service(name, app string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": app},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	t.Run("004-74 replace", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		interfere := make(chan struct{})
		b.before(func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/services/web")
		}, func() {
			b.merge("them", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, `{"metadata":{"labels":{"late":"x"}}}`)
			close(interfere)
		})
		b.start()
		b.create(policy(b, service("web", "one"), "update-policy", "replace"))
		b.ready()
		live := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
		b.merge("them", live, `{"metadata":{"labels":{"theirs":"x"},"finalizers":["example.org/theirs"]},"spec":{"externalIPs":["198.51.100.1"]}}`)
		b.change(policy(b, service("web", "two"), "update-policy", "replace"))
		b.ready()
		<-interfere
		after := &corev1.Service{}
		if err := b.admin.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: "web"}, after); err != nil {
			t.Fatal(err)
		}
		if after.Spec.Selector["app"] != "two" || after.Labels["theirs"] != "" || after.Labels["late"] != "" || len(after.Spec.ExternalIPs) > 0 {
			t.Errorf("values of others are left: %v %v", after.Labels, after.Spec)
		}
		if len(after.Finalizers) != 1 || after.Spec.ClusterIP != live.Spec.ClusterIP || after.Spec.Ports[0].NodePort != live.Spec.Ports[0].NodePort {
			t.Errorf("finalizers %v, cluster IP %s, node port %d are not kept", after.Finalizers, after.Spec.ClusterIP, after.Spec.Ports[0].NodePort)
		}
		b.fence()
		if writes := b.requests.Writes("services", b.namespace, "web"); len(writes) != 3 || writes[1].Code != http.StatusConflict {
			t.Errorf("writes %v, want a create, a conflict and an update", writes)
		}
		if !b.samePass("services") {
			t.Errorf("the conflict ended the pass:\n%s", b.requests)
		}
		b.merge("them", live, `{"metadata":{"finalizers":null}}`)
	})
	t.Run("a status without a subresource is its controller's", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		kind := plain(b.baz())
		version, _ := kind.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		delete(version, "subresources")
		testenv.Install(t, b.cfg, kind)
		b.start()
		baz := func(value string) *unstructured.Unstructured {
			u := policy(b, b.bazOf("one"), "update-policy", "replace")
			u.Object["spec"] = map[string]any{"value": value}
			return u
		}
		b.create(baz("1"))
		b.ready()
		b.patch(b.baz().Group+"/v1", "Baz", "one", `{"status":{"lent":"x"},"spec":{"theirs":"x"}}`)
		b.change(baz("2"))
		b.ready()
		live := b.exists(b.in(b.bazOf("one")))
		status, _, _ := unstructured.NestedMap(live.Object, "status")
		spec, _, _ := unstructured.NestedMap(live.Object, "spec")
		if diff := cmp.Diff(map[string]any{"value": "2"}, spec); diff != "" || status["lent"] != "x" {
			t.Errorf("status %v, spec (-want +got):\n%s", status, diff)
		}
	})
	t.Run("edits of replaced objects are corrected", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, func(o *options) { o.Policies.UpdatePolicy = api.UpdatePolicyReplace })
		theirs := data("adopted", "value", "1", "other", "x")
		theirs.Namespace = b.namespace
		if err := b.admin.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		b.create(configMap("one", "1"), configMap("adopted", "1"), service("web", "one"))
		b.ready()
		b.requests.Reset()
		for _, name := range []string{"one", "adopted"} {
			b.merge("them", b.named(name), `{"data":{"theirs":"x"}}`)
			b.merge("them", b.named(name), `{"data":{"value":"2"}}`)
			b.value(name, "1")
		}
		web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
		b.merge("them", web, `{"metadata":{"labels":{"theirs":"x"}}}`)
		b.fence()
		if writes := b.requests.Writes("services", b.namespace, "web"); len(writes) > 0 {
			t.Errorf("a label of others caused %v", writes)
		}
		b.merge("them", web, `{"spec":{"selector":{"app":"two"}}}`)
		testenv.Wait(t, b.admin, web, "corrected", func(s *corev1.Service) bool { return s.Spec.Selector["app"] == "one" })
		b.fence()
		for resource, name := range map[string]string{"configmaps": "one", "services": "web"} {
			if writes := b.requests.Writes(resource, b.namespace, name); len(writes) != 1 {
				t.Errorf("writes of %s: %v, want one", name, writes)
			}
		}
	})
}

// samePass reports whether the component was not written between a conflict and the next write of the
// resource.
func (b *bench) samePass(resource string) bool {
	conflict := false
	for _, r := range b.requests.All() {
		switch {
		case r.Resource == resource && r.Code == http.StatusConflict:
			conflict = true
		case r.Resource == resource && r.IsWrite() && conflict:
			return true
		case r.Resource == "bundles" && r.IsWrite() && conflict:
			return false
		}
	}
	return false
}

func TestMerge(t *testing.T) {
	t.Parallel()
	t.Run("004-75 ssa-merge", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		b.start()
		b.create(policy(b, data("one", "value", "1", "put", "x"), "update-policy", "replace"))
		b.ready()
		b.merge("them", b.named("one"), `{"data":{"theirs":"x"}}`)
		b.merge("kubectl-edit", b.named("one"), `{"data":{"edited":"x"}}`)
		b.change(policy(b, data("one", "value", "2", "applied", "x"), "update-policy", "ssa-merge"))
		b.ready()
		b.hasData("one", map[string]string{"value": "2", "applied": "x", "theirs": "x", "edited": "x"})
		b.change(policy(b, data("one", "value", "3"), "update-policy", "ssa-merge"))
		b.ready()
		b.hasData("one", map[string]string{"value": "3", "theirs": "x", "edited": "x"})
	})
}

// hasData fails the test unless a ConfigMap has exactly this data.
func (b *bench) hasData(name string, want map[string]string) {
	b.t.Helper()
	got := b.live(name).Data
	for key := range got {
		if got[key] != want[key] {
			b.t.Errorf("%s: %s is %q, want %q", name, key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		b.t.Errorf("%s has %v, want %v", name, got, want)
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	t.Run("004-76 ssa-override", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t)
		type writer func(manager string, m *corev1.ConfigMap) error
		create := func(manager string, m *corev1.ConfigMap) error { return b.as(manager).Create(t.Context(), m) }
		apply := func(manager string, m *corev1.ConfigMap) error {
			m.ManagedFields = nil
			return b.admin.Patch(t.Context(), m, client.Apply, client.FieldOwner(manager), client.ForceOwnership) //nolint:staticcheck // the typed form needs another type
		}
		var dependents []client.Object
		for name, how := range map[string]struct {
			manager string
			write   writer
		}{
			"client-side": {"kubectl-client-side-apply", create},
			"server-side": {"kubectl", apply},
			"edit":        {"kubectl-edit", create},
			"helm-3":      {"helm", create},
			"helm-4":      {"helm", apply},
		} {
			m := data(name, "value", "1", "theirs", "x")
			m.Namespace = b.namespace
			if err := how.write(how.manager, m); err != nil {
				t.Fatal(err)
			}
			b.merge("other", b.named(name), `{"data":{"other":"x"}}`)
			dependents = append(dependents, data(name, "value", "2"))
		}
		b.start()
		b.create(dependents...)
		b.ready()
		for _, o := range dependents {
			b.hasData(o.GetName(), map[string]string{"value": "2", "other": "x"})
		}
		b.merge("kubectl-edit", b.named("helm-4"), `{"data":{"later":"x"}}`)
		for _, o := range dependents {
			o.(*corev1.ConfigMap).Data["value"] = "3"
		}
		b.change(dependents...)
		b.ready()
		for _, o := range dependents {
			b.hasData(o.GetName(), map[string]string{"value": "3", "other": "x"})
		}
	})
	t.Run("finalizers stay", func(t *testing.T) {
		t.Parallel()
		const held = "others.example.org/held"
		b := prepareBench(t)
		b.start()
		b.create(data("one", "value", "1"))
		b.ready()
		b.merge("kubectl-edit", b.named("one"), `{"metadata":{"finalizers":["`+held+`"]},"data":{"theirs":"x"}}`)
		b.change(data("one", "value", "2"))
		b.ready()
		b.hasData("one", map[string]string{"value": "2"})
		if got := b.live("one").Finalizers; !slices.Equal(got, []string{held}) {
			t.Errorf("the finalizers are %q, want that of somebody who waits for the end of the object", got)
		}
		b.merge("kubectl-edit", b.named("one"), `{"metadata":{"finalizers":null}}`)
	})
}

func TestRecreate(t *testing.T) {
	t.Parallel()
	t.Run("004-77 recreate", func(t *testing.T) {
		t.Parallel()
		b := prepareBench(t, func(o *options) { o.RequeueInterval = 20 * time.Millisecond; o.Timeout = time.Minute })
		b.start()
		one := func(value string) *corev1.ConfigMap {
			return policy(b, configMap("one", value), "update-policy", "recreate")
		}
		b.create(one("1"))
		b.ready()
		first := b.live("one")
		b.merge("them", b.named("one"), `{"metadata":{"finalizers":["example.org/theirs"]}}`)
		b.change(one("2"))
		testenv.Wait(t, b.admin, b.named("one"), "being deleted", func(m *corev1.ConfigMap) bool { return m.DeletionTimestamp != nil })
		b.await("waiting", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, "being deleted") })
		b.merge("them", b.named("one"), `{"metadata":{"finalizers":null}}`)
		second := b.value("one", "2")
		b.ready()
		if second.UID == first.UID {
			t.Error("the object was changed in place")
		}
		deletes := b.requests.Select(func(r testenv.Request) bool { return r.Verb == "delete" })
		if len(deletes) != 1 || !bytes.Contains(deletes[0].Body, []byte(first.UID)) {
			t.Errorf("deletes %v, want one with the uid as precondition", deletes)
		}
	})
	t.Run("W2 nothing is re-created by time", func(t *testing.T) {
		t.Parallel()
		passes := make(chan struct{}, 1)
		b := prepareBench(t, func(o *options) { o.RequeueInterval = time.Millisecond; o.Timeout = time.Minute })
		b.renderer = versioned{component.RenderFunc[*bundle.Bundle](render), func() string {
			select {
			case passes <- struct{}{}:
			default:
			}
			return ""
		}}
		b.start()
		b.create(policy(b, configMap("one", "1"), "update-policy", "recreate"))
		b.ready()
		before := b.live("one")
		b.requests.Reset()
		for range 50 {
			<-passes
		}
		if after := b.live("one"); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
			t.Error("the object was created again, or written")
		}
		b.wrote("one", 0)
	})
}
