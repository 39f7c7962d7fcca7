package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/operator"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/testenv"
)

// things is a driver whose resources are items of a cloud, by name, with an ownership mark.
type things struct{}

type vendor = *simcloud.Client

func (things) ExternalName(o *thing.Thing) (string, error) { return o.Name, nil }

func (things) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, vendor]) (external.Observation[simcloud.Item], error) {
	have, err := r.Client.Get(ctx, r.ID)
	return external.Available(have, external.MarkOf(have.Tags)), err
}

func (things) Compare(r external.CompareRequest[*thing.Thing, simcloud.Item]) external.Changes {
	want := properties(r.Object)
	return external.Diff(
		external.Field("spec.size", want["size"], r.Have.Properties["size"]),
		external.Recreates(external.Field("spec.tier", want["tier"], r.Have.Properties["tier"])),
	)
}

func properties(o *thing.Thing) map[string]string {
	return map[string]string{"size": strconv.Itoa(o.Spec.Size), "tier": o.Spec.Tier}
}

func (things) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, vendor]) (external.CreateResponse[simcloud.Item], error) {
	_, err := r.Client.Create(ctx, simcloud.Item{Name: r.ID, Properties: properties(r.Object), Tags: r.Mark.On(nil)}, "")
	return external.CreateResponse[simcloud.Item]{}, err
}

func (things) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, vendor, simcloud.Item]) (external.UpdateResponse[simcloud.Item], error) {
	_, err := r.Client.Update(ctx, r.ID, properties(r.Object))
	return external.UpdateResponse[simcloud.Item]{}, err
}

func (things) Delete(ctx context.Context, r external.DeleteRequest[*thing.Thing, vendor]) (external.DeleteResponse, error) {
	_, err := r.Client.Delete(ctx, r.ID)
	return external.DeleteResponse{}, err
}

func (things) Mark(ctx context.Context, r external.MarkRequest[*thing.Thing, vendor]) (external.MarkResponse, error) {
	_, err := r.Client.SetTags(ctx, r.ID, r.Mark.On(nil))
	return external.MarkResponse{}, err
}

func (things) Unmark(ctx context.Context, r external.UnmarkRequest[*thing.Thing, vendor]) (external.UnmarkResponse, error) {
	have, err := r.Client.Get(ctx, r.ID)
	if err == nil {
		_, err = r.Client.SetTags(ctx, r.ID, external.Unmark(have.Tags))
	}
	return external.UnmarkResponse{}, err
}

// bench is an operator in this process, and its cloud.
type bench struct {
	*operatortest.Operator

	t     *testing.T
	file  string
	cloud *simcloud.Cloud
}

// newThings runs an operator of Things.
func newThings(t *testing.T) *bench {
	t.Helper()
	cloud := simcloud.New(simcloud.Options{})
	server := httptest.NewServer(cloud)
	t.Cleanup(server.Close)
	definition, err := thing.CRDs.ReadFile("crds/things.trimtab.dev_things.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := fstest.MapFS{"things.yaml": {Data: definition}} // all are namespaced, so that the operator works in its namespace alone
	o := external.Options[*thing.Thing, vendor]{
		Connect: func(context.Context) (vendor, error) { return &simcloud.Client{URL: server.URL}, nil }, CreateGrace: -1,
		Limits: external.Limits{Adoption: api.AdoptionAlways},
	}
	return newBench(t, cloud, operator.Options{
		Name: "things-operator", AddToScheme: thing.AddToScheme, CRDs: crds,
		Controllers: func() ([]operator.Controller, error) { return []operator.Controller{external.New(things{}, o)}, nil },
	})
}

// newBundles runs an operator of Bundles.
func newBundles(t *testing.T) *bench {
	t.Helper()
	render := component.RenderFunc[*bundle.Bundle](func(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
		objects, err := r.Component.Render()
		return component.Objects(objects...), err
	})
	return newBench(t, nil, operator.Options{
		Name: "bundles-operator", AddToScheme: bundle.AddToScheme, CRDs: bundle.CRDs,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{component.New(render, component.Options[*bundle.Bundle]{Name: "bundles.example.org", HandoverGrace: -1})}, nil
		},
	})
}

func newBench(t *testing.T, cloud *simcloud.Cloud, o operator.Options) *bench {
	t.Helper()
	op := operatortest.Run(t, o)
	return &bench{Operator: op, t: t, file: testenv.Kubeconfig(t, op.Config), cloud: cloud}
}

func (b *bench) do(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// run runs a command and wants it to succeed and to print these texts.
func (b *bench) run(args []string, want ...string) {
	b.t.Helper()
	code, out := ask(b.t.Context(), append(args, "-n", b.Namespace, "--kubeconfig", b.file)...)
	if code != 0 {
		b.t.Fatalf("%q: exit code %d: %s", args, code, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			b.t.Errorf("%q printed\n%s\nwhich lacks %q", args, out, text)
		}
	}
}

func (b *bench) thing(name string) *thing.Thing {
	return &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}}
}

func isReady(status *api.Status, generation int64) bool {
	c := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

func (b *bench) ready(o *thing.Thing) *thing.Thing {
	b.t.Helper()
	return testenv.Wait(b.t, b.Client, o, "it to be Ready", func(o *thing.Thing) bool { return isReady(&o.Status.Status, o.Generation) })
}

func (b *bench) says(o *thing.Thing, reason string) *thing.Thing {
	b.t.Helper()
	return testenv.Wait(b.t, b.Client, o, reason, func(o *thing.Thing) bool {
		c := meta.FindStatusCondition(o.Status.Conditions, api.ConditionFailed)
		return c != nil && c.Reason == reason && o.Status.ObservedGeneration == o.Generation
	})
}

// requests returns what has changed something in the cloud.
func (b *bench) requests() (all []string) {
	for _, r := range b.cloud.Log() {
		if r.Effect {
			all = append(all, r.Method+" "+r.Path)
		}
	}
	return all
}

// TestAdoptTakes: after adopt, the resource that exists is the object's, and none was created; with --from, also that of another
// owner.
func TestAdoptTakes(t *testing.T) {
	t.Parallel()
	b := newThings(t)
	b.cloud.Put(simcloud.Item{ID: "a", Name: "a", Properties: map[string]string{"size": "7", "tier": ""}})
	o := b.thing("a")
	b.do(b.Client.Create(t.Context(), o))
	b.says(o, "NotOurs")
	b.run([]string{"adopt", "thing/a", "--dry-run"}, "Thing/a: would set annotation trimtab.dev/adoption: always (dry run)", "now: ", "Undo    it cannot be undone once the operator has acted; before that: kubectl annotate thing a trimtab.dev/adoption- -n "+b.Namespace+" --kubeconfig="+b.file)
	b.says(o, "NotOurs")
	b.run([]string{"adopt", "thing/a"}, "Thing/a: annotation trimtab.dev/adoption: always")
	b.ready(o)
	if got := b.requests(); slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "POST") }) || b.cloud.Items()["a"].Properties["size"] != "0" || len(b.cloud.Items()) != 1 {
		t.Errorf("requests %q, items %v: the one that existed should be there alone, with the spec's size", got, b.cloud.Items())
	}
	b.run([]string{"adopt", "thing/a"}, `Thing/a: nothing to do: it has the external resource "a", so there is nothing to adopt`)

	owner := map[string]string{}
	for key, value := range b.cloud.Items()["a"].Tags {
		owner[key] = strings.ReplaceAll(strings.ReplaceAll(value, string(o.UID), "u0"), b.Namespace+"/a", b.Namespace+"/gone")
	}
	b.cloud.Put(simcloud.Item{ID: "b", Name: "b", Properties: map[string]string{"size": "7", "tier": ""}, Tags: owner})
	o = b.thing("b")
	b.do(b.Client.Create(t.Context(), o))
	said := b.says(o, "NotOurs").Status.Message
	if !strings.Contains(said, `"from:u0"`) {
		t.Fatalf("the status says %q", said)
	}
	if code, out := ask(t.Context(), "adopt", "thing/b", "-n", b.Namespace, "--kubeconfig", b.file); code != 1 || !strings.Contains(out, "use --from u0") {
		t.Errorf("without --from: exit code %d: %s", code, out)
	}
	if code, out := ask(t.Context(), "adopt", "thing/b", "--from", "u1", "-n", b.Namespace, "--kubeconfig", b.file); code != 1 || !strings.Contains(out, "belongs to the object with UID u0, not to u1") {
		t.Errorf("from another one: exit code %d: %s", code, out)
	}
	b.run([]string{"adopt", "thing/b", "--from", "u0"}, "Thing/b: annotation trimtab.dev/adoption: from:u0")
	b.ready(o)
	if got := b.requests(); slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "POST") }) {
		t.Errorf("requests %q: something was created", got)
	}
}

// TestOrphanKeeps: after orphan, what the object stands for is still there when the object is gone.
func TestOrphanKeeps(t *testing.T) {
	t.Parallel()
	t.Run("an external resource", func(t *testing.T) {
		t.Parallel()
		b := newThings(t)
		kept, lost := b.thing("kept"), b.thing("lost")
		for _, o := range []*thing.Thing{kept, lost} {
			b.do(b.Client.Create(t.Context(), o))
			b.ready(o)
		}
		b.run([]string{"orphan", "thing/lost", "--dry-run"}, "(dry run)", `Kept    external resource "lost"`)
		b.run([]string{"orphan", "thing/kept"}, "Thing/kept: annotation trimtab.dev/deletion: orphan", `Kept    external resource "kept"`)
		for _, o := range []*thing.Thing{kept, lost} {
			b.do(b.Client.Delete(t.Context(), o))
			testenv.Gone(t, b.Client, o, "deleted")
		}
		if items := b.cloud.Items(); len(items) != 1 || items["kept"].Name != "kept" || len(items["kept"].Tags) != 0 {
			t.Errorf("items %v, want kept alone, without a mark", items)
		}
	})
	t.Run("dependents", func(t *testing.T) {
		t.Parallel()
		b := newBundles(t)
		o := b.bundle("a", 3)
		b.do(b.Client.Create(t.Context(), o))
		b.readyBundle(o)
		b.run([]string{"orphan", "bundle/a"}, "Bundle/a: annotation bundles.example.org/abandon: ", "ConfigMap/m0", "ConfigMap/m2", "dependents that it gets later are not kept")
		b.run([]string{"orphan", "bundle/a"}, "Bundle/a: nothing to do: ")
		b.do(b.Client.Delete(t.Context(), o))
		testenv.Gone(t, b.Client, o, "deleted")
		for i := range 3 {
			m := b.configMap(i)
			b.do(b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
			if !m.DeletionTimestamp.IsZero() {
				t.Errorf("%s is being deleted", m.Name)
			}
		}
	})
}

func (b *bench) configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: fmt.Sprintf("m%d", i)},
	}
}

func (b *bench) objects(n int) (all []runtime.RawExtension) {
	b.t.Helper()
	for i := range n {
		raw, err := json.Marshal(b.configMap(i))
		b.do(err)
		all = append(all, runtime.RawExtension{Raw: raw})
	}
	return all
}

// bundle has n ConfigMaps.
func (b *bench) bundle(name string, n int) *bundle.Bundle {
	b.t.Helper()
	return &bundle.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: name}, Spec: bundle.Spec{Objects: b.objects(n)}}
}

func (b *bench) readyBundle(o *bundle.Bundle) *bundle.Bundle {
	b.t.Helper()
	return testenv.Wait(b.t, b.Client, o, "it to be Ready", func(o *bundle.Bundle) bool { return isReady(&o.Status.Status, o.Generation) })
}

// TestApproveReleases: after approve, the step that was held happens, and that alone.
func TestApproveReleases(t *testing.T) {
	t.Parallel()
	t.Run("most dependents are deleted", func(t *testing.T) {
		t.Parallel()
		b := newBundles(t)
		o := b.bundle("a", 4)
		b.do(b.Client.Create(t.Context(), o))
		o = b.readyBundle(o)
		b.run([]string{"approve", "bundle/a"}, "Bundle/a: nothing to do: nothing is held")
		o.Spec.Objects = b.objects(1)
		b.do(b.Client.Update(t.Context(), o))
		o = testenv.Wait(t, b.Client, o, "the guard", func(o *bundle.Bundle) bool {
			return meta.IsStatusConditionTrue(o.Status.Conditions, api.ConditionPruneBlocked) && o.Status.ObservedGeneration == o.Generation
		})
		b.run([]string{"approve", "bundle/a", "--dry-run"}, "would set annotation bundles.example.org/allow-prune: 2", "Not kept  ConfigMap/m1\n", "ConfigMap/m3\n")
		b.run([]string{"approve", "bundle/a", "--step", "prune"}, "annotation bundles.example.org/allow-prune: 2")
		b.readyBundle(o)
		testenv.Gone(t, b.Client, b.configMap(3), "deleted")
		m := b.configMap(0)
		b.do(b.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		b.run([]string{"approve", "bundle/a"}, "nothing is held")
	})
	t.Run("a resource is recreated", func(t *testing.T) {
		t.Parallel()
		b := newThings(t)
		o := b.thing("a")
		o.Annotations = map[string]string{api.AnnotationAccess: "cu"}
		b.do(b.Client.Create(t.Context(), o))
		o = b.ready(o)
		o.Spec.Tier = "large"
		b.do(b.Client.Update(t.Context(), o))
		b.says(o, "RecreateNotPermitted")
		b.run([]string{"approve", "thing/a"}, "annotation trimtab.dev/access-permissions: cud", `external resource "a" is deleted and created again`, "trimtab.dev/access-permissions=cu --overwrite")
		b.ready(o)
		if got := b.requests(); !slices.Equal(got, []string{"POST /items", "DELETE /items/a", "POST /items"}) {
			t.Errorf("requests %q", got)
		}
	})
}
