package component_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestExplicitEdges(t *testing.T) {
	t.Parallel()
	t.Run("B-6 explicit edges", func(t *testing.T) {
		t.Parallel()
		for name, f := range map[string]func(*testing.T){
			"annotation": annotated, "After": after, "a cycle": cyclic, "skipped dependants": skippedDependants,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t)
			})
		}
	})
}

// annotated has tasks in a chain by annotations: each form of a reference.
func annotated(t *testing.T) {
	t.Helper()
	b := newBench(t).withTasks()
	after := func(name, on string) client.Object { return task(name, b.key("depends-on"), on) }
	b.create(
		after("a-third", "Task/second, "+tasks().Group+"/Task/"+b.namespace+"/z-first"),
		after("second", tasks().Group+"/Task//z-first"), task("z-first"),
	)
	b.chain("z-first", "second", "a-third")
}

// after is the same by methods of the set.
func after(t *testing.T) {
	t.Helper()
	b := prepareBench(t)
	b.renderer = component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		var s component.Set
		objects, err := r.Component.Render()
		if err != nil {
			return s, err
		}
		third, second, first := s.Add(objects[0]), s.Add(objects[1]), s.Add(objects[2])
		third.After(second, first)
		second.After(first)
		return s, nil
	})
	b.withTasks().start()
	b.create(task("a-third"), task("second"), task("z-first"))
	b.chain("z-first", "second", "a-third")
}

// chain checks that tasks are applied one after the other, each when the one before is ready, and deleted in
// the reverse order, each when the one before is gone.
func (b *bench) chain(names ...string) {
	b.t.Helper()
	for i, name := range names {
		b.waiting("Task " + b.namespace + "/" + name)
		for _, later := range names[i+1:] {
			b.absent(b.task(later))
		}
		b.patch(tasks().Group+"/v1", tasks().Kind, name, `{"metadata":{"finalizers":["example.org/holds"]}}`)
		b.finish(name, true)
	}
	b.ready()
	b.delete()
	slices.Reverse(names)
	for i, name := range names {
		b.waiting("Task "+b.namespace+"/"+name, "example.org/holds")
		for _, later := range names[i+1:] {
			if b.exists(b.task(later)).GetDeletionTimestamp() != nil {
				b.t.Errorf("%s is being deleted before %s is gone", later, name)
			}
		}
		b.patch(tasks().Group+"/v1", tasks().Kind, name, `{"metadata":{"finalizers":null}}`)
	}
	b.gone()
}

func cyclic(t *testing.T) {
	t.Helper()
	b := newBench(t)
	after := func(name, on string) client.Object { return configMap(name, "1", b.key("depends-on"), "ConfigMap/"+on) }
	b.create(after("a", "c"), after("b", "a"), after("c", "b"), configMap("d", "1"))
	title := "ConfigMap " + b.namespace + "/"
	o := b.failed("these objects depend on each other: "+title+"a → "+title+"c → "+title+"b → "+title+"a", "remove one of the annotations "+b.key("depends-on"))
	if len(o.Status.Inventory) > 0 {
		t.Errorf("%d objects are recorded", len(o.Status.Inventory))
	}
	b.untouched()
}

// skippedDependants: what comes after an object that failed is named, the rest is applied.
func skippedDependants(t *testing.T) {
	t.Helper()
	b := newBench(t)
	after := func(name, on string) client.Object { return configMap(name, "1", b.key("depends-on"), "ConfigMap/"+on) }
	bad := configMap("bad", "1")
	bad.Data = map[string]string{"not a key": "x"}
	b.create(bad, after("next", "bad"), after("last", "next"), configMap("other", "1"))
	title := "ConfigMap " + b.namespace + "/"
	b.failed("cannot create "+title+"bad: ", "; skipped because of that: "+title+"last, "+title+"next")
	b.value("other", "1")
	b.absent(b.named("next"))
	b.absent(b.named("last"))
	b.change(configMap("bad", "1"), after("next", "bad"), after("last", "next"), configMap("other", "1"))
	b.ready()
}

// implicitEdges: an object that is not there holds what needs it, and one that does not go holds what it needs.
func implicitEdges(t *testing.T, s *site) {
	t.Helper()
	for name, edge := range map[string]func(*bench) edge{
		"definition": definitionEdge, "APIService": aggregatedEdge, "Namespace": namespaceEdge, "account": accountEdge,
		"role": roleEdge, "webhook": webhookEdge,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := prepareBenchOn(t, s.cfg).withTasks()
			b.start()
			edge(b).check(b)
		})
	}
}

// edge is from an object to one that it needs. The one that is needed comes after a task that the test
// finishes, and the other has a finalizer that the test removes.
type edge struct {
	needed, needs client.Object
	more          []client.Object
	// class is what switches the edge off.
	class string
	// alone is what the component says without the edge, if the object cannot exist without what it needs.
	alone string
}

const held = "example.org/holds"

func (e edge) check(b *bench) {
	b.t.Helper()
	annotate(e.needed, b.key("depends-on"), "Task/gate")
	e.needs.SetFinalizers([]string{held})
	all := append([]client.Object{e.needed, e.needs, task("gate")}, e.more...)
	title := e.needs.GetObjectKind().GroupVersionKind().Kind + " " + strings.TrimPrefix(e.needs.GetNamespace()+"/"+e.needs.GetName(), "/")

	b.create(all...)
	b.waiting("Task " + b.namespace + "/gate")
	b.fence()
	if n := len(b.attempts(e.needs)); n > 0 {
		b.t.Errorf("%s is created before what it needs:\n%v", title, b.requests)
	}
	b.finish("gate", true)
	b.ready()
	b.delete()
	b.waiting(title, held)
	b.fence()
	if b.leaving(e.needed) {
		b.t.Errorf("what %s needs is being deleted while it exists", title)
	}
	b.release(e.needs)
	b.gone()

	annotate(e.needs, b.key("implicit-edges"), "-"+e.class)
	if e.alone != "" { // an order that contradicts the edge
		annotate(e.needs, b.key("apply-order"), "-1")
		b.createAs("a", all...)
		b.await("edge off", func(o *bundle.Bundle) bool { return strings.Contains(o.Status.Message, e.alone) })
		b.delete()
		b.gone()
		return
	}
	b.requests.Reset()
	b.create(all...)
	b.waiting("Task " + b.namespace + "/gate")
	within(b.t, title+" is created", func() bool { return len(b.attempts(e.needs)) > 0 })
	b.finish("gate", true)
	b.ready()
	b.delete()
	b.waiting(title, held)
	within(b.t, "what "+title+" does not need any more goes", func() bool { return b.leaving(e.needed) })
	b.release(e.needs)
	b.gone()
}

// attempts are the writes of an object by the operator.
func (b *bench) attempts(o client.Object) []testenv.Request {
	return b.requests.Select(func(r testenv.Request) bool {
		return r.IsWrite() && r.Name == o.GetName() && r.Resource != "bundles" && r.Resource != "events"
	})
}

// liveOf refers to an object whose namespace may be that of the bench.
func (b *bench) liveOf(o client.Object) *unstructured.Unstructured {
	kind := o.GetObjectKind().GroupVersionKind()
	u := object(kind.GroupVersion().String(), kind.Kind, o.GetName(), nil)
	u.SetNamespace(o.GetNamespace())
	return u
}

// leaving reports whether an object is being deleted or gone.
func (b *bench) leaving(o client.Object) bool {
	u := b.liveOf(o)
	err := b.admin.Get(b.t.Context(), client.ObjectKeyFromObject(u), u)
	return apierrors.IsNotFound(err) || err == nil && u.GetDeletionTimestamp() != nil
}

// release removes the finalizers of an object.
func (b *bench) release(o client.Object) {
	b.t.Helper()
	if err := b.admin.Patch(b.t.Context(), b.liveOf(o), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		b.t.Fatal(err)
	}
}

const unserved = "cannot be created before the API server serves its kind"

func definitionEdge(b *bench) edge {
	return edge{needed: plain(b.baz()), needs: b.in(b.bazOf("needs")), class: "types", alone: unserved}
}

func aggregatedEdge(b *bench) edge {
	kind := schema.GroupKind{Group: b.namespace + ".things.example.org", Kind: "Thing"}
	known := b.aggregate(kind)
	return edge{
		needed: known[1], needs: b.in(object(kind.Group+"/v1", kind.Kind, "needs", nil)), more: known[:1], class: "types", alone: unserved,
	}
}

func namespaceEdge(b *bench) edge {
	inside := configMap("needs", "1")
	inside.Namespace = b.namespace + "-x"
	return edge{needed: object("v1", "Namespace", inside.Namespace, nil), needs: inside, class: "namespaces", alone: `namespaces "` + inside.Namespace + `" not found`}
}

func (b *bench) workload() *unstructured.Unstructured {
	return b.in(object("apps/v1", "Deployment", "needs", map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"serviceAccountName": "web", "containers": []any{map[string]any{"name": "c", "image": "none"}}},
		},
	}}))
}

func accountEdge(b *bench) edge {
	return edge{needed: b.in(object("v1", "ServiceAccount", "web", nil)), needs: b.workload(), class: "accounts"}
}

func roleEdge(b *bench) edge {
	needed := role("r")
	needed.Namespace = b.namespace
	return edge{needed: needed, needs: b.workload(), more: []client.Object{b.binding("web")}, class: "accounts"}
}

func webhookEdge(b *bench) edge {
	server := b.workload()
	server.SetName("server")
	service := object("v1", "Service", "hook", map[string]any{"spec": map[string]any{
		"selector": map[string]any{"app": "web"}, "ports": []any{map[string]any{"port": int64(443)}},
	}})
	hook := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", b.namespace+"-needs", map[string]any{"webhooks": []any{map[string]any{
		"name": "hook.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
		"clientConfig": map[string]any{"service": map[string]any{"namespace": b.namespace, "name": "hook"}},
		"rules": []any{map[string]any{
			"apiGroups": []any{"nobody.example.org"}, "apiVersions": []any{"*"}, "operations": []any{"CREATE"}, "resources": []any{"nothings"},
		}},
	}}})
	return edge{needed: server, needs: hook, more: []client.Object{service}, class: "backends"}
}
