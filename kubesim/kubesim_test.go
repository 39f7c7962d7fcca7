package kubesim_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/kubesim"
)

// newCluster returns a cluster that knows ponds, and an administrator's client.
func newCluster(t *testing.T) (*kubesim.Cluster, client.Client) {
	t.Helper()
	c := kubesim.New(t, kubesim.Options{CRDs: os.DirFS("testdata/crd")})
	return c, newClient(t, c.Config())
}

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must ends the test if a step of its preparation fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// object reads an object as a user would write it: YAML in its JSON form.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, json.Unmarshal([]byte(text), &u.Object))
	return u
}

func pond(t *testing.T, name, rest string) *unstructured.Unstructured {
	t.Helper()
	return object(t, `{"apiVersion": "example.com/v1", "kind": "Pond", "metadata": {"namespace": "default", "name": "`+name+`"}`+rest+`}`)
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func TestBuiltIn(t *testing.T) {
	_, c := newCluster(t)
	d := deployment("web")
	must(t, c.Create(t.Context(), d))
	type facts struct {
		Generation   int64
		Replicas     int32
		Pull         corev1.PullPolicy
		Ready        int32
		MadeByServer bool
	}
	check := func(step string, want facts) {
		t.Helper()
		want.MadeByServer = true
		got := facts{
			d.Generation, *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].ImagePullPolicy, d.Status.ReadyReplicas,
			d.UID != "" && d.ResourceVersion != "" && !d.CreationTimestamp.IsZero() && len(d.ManagedFields) > 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	check("what is not said is filled in", facts{Generation: 1, Replicas: 1, Pull: corev1.PullAlways})

	old := d.DeepCopy()
	d.Spec.Replicas, d.Status.ReadyReplicas = new(int32(2)), 5
	must(t, c.Update(t.Context(), d))
	check("an update of the spec leaves the status", facts{Generation: 2, Replicas: 2, Pull: corev1.PullAlways})

	d.Spec.Replicas, d.Status.Replicas, d.Status.ReadyReplicas = new(int32(3)), 1, 1
	must(t, c.Status().Update(t.Context(), d))
	check("an update of the status leaves the spec", facts{Generation: 2, Replicas: 2, Pull: corev1.PullAlways, Ready: 1})

	before := d.ResourceVersion
	must(t, c.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))))
	if d.ResourceVersion != before {
		t.Errorf("a patch that changes nothing made revision %s of %s", d.ResourceVersion, before)
	}
	if err := c.Update(t.Context(), old); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old copy: %v; want a conflict", err)
	}
	d.Spec.Selector.MatchLabels = map[string]string{"app": "other"}
	if err := c.Update(t.Context(), d); !apierrors.IsInvalid(err) {
		t.Errorf("an update of the selector: %v; want it to be invalid", err)
	}
	other := client.Preconditions{UID: new(types.UID("other"))}
	if err := c.Delete(t.Context(), d, other); !apierrors.IsConflict(err) {
		t.Errorf("deletion of another object of that name: %v; want a conflict", err)
	}
	must(t, c.Delete(t.Context(), d))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) {
		t.Errorf("after deletion: %v; want not found", err)
	}
}

func TestCustom(t *testing.T) {
	_, c := newCluster(t)
	p := pond(t, "north", `, "spec": {"junk": 1, "depth": "1m"}, "status": {"ducks": 4}`)
	p.SetFinalizers([]string{"example.com/drain"})
	must(t, c.Create(t.Context(), p))
	check := func(step, want string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"generation": p.GetGeneration(), "spec": p.Object["spec"], "status": p.Object["status"]})
		must(t, err)
		if diff := cmp.Diff(want, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step, diff)
		}
	}
	check("defaults are set, unknown fields and the status dropped", `{"generation":1,"spec":{"depth":"1m","size":3},"status":null}`)

	wrong := p.DeepCopy()
	wrong.Object["spec"] = map[string]any{"size": 12}
	want := `Pond.example.com "north" is invalid: spec: Invalid value: too large for ducks`
	if err := c.Update(t.Context(), wrong); err == nil || err.Error() != want {
		t.Errorf("against a rule: %v; want %s", err, want)
	}
	p.Object["status"] = map[string]any{"ducks": int64(2)}
	must(t, c.Status().Update(t.Context(), p))
	check("the status has its own door", `{"generation":1,"spec":{"depth":"1m","size":3},"status":{"ducks":2}}`)

	scale := object(t, `{"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 7}}`)
	must(t, c.SubResource("scale").Update(t.Context(), p, client.WithSubResourceBody(scale)))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	check("scaling changes the spec", `{"generation":2,"spec":{"depth":"1m","size":7},"status":{"ducks":2}}`)

	must(t, c.Delete(t.Context(), p))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	if p.GetDeletionTimestamp() == nil {
		t.Error("deleted with a finalizer: no deletion timestamp")
	}
	p.SetFinalizers([]string{"example.com/drain", "example.com/more"})
	if err := c.Update(t.Context(), p); err == nil {
		t.Error("a finalizer could be added to an object that goes")
	}
	p.SetFinalizers(nil)
	must(t, c.Update(t.Context(), p))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("without finalizers: %v; want not found", err)
	}
}

func TestApply(t *testing.T) {
	_, c := newCluster(t)
	apply := func(who, fish string, more ...client.PatchOption) (*unstructured.Unstructured, error) {
		p := pond(t, "north", `, "spec": {"fish": [`+fish+`]}`)
		return p, c.Patch(t.Context(), p, client.Apply, append(more, client.FieldOwner(who))...)
	}
	_, err := apply("jane", `{"name": "carp", "count": 1}`)
	must(t, err)
	both, err := apply("john", `{"name": "pike", "count": 2}`)
	must(t, err)
	fish := func(p *unstructured.Unstructured) string {
		list, _, _ := unstructured.NestedSlice(p.Object, "spec", "fish")
		text, err := json.Marshal(list)
		must(t, err)
		return string(text)
	}
	if diff := cmp.Diff(`[{"count":1,"name":"carp"},{"count":2,"name":"pike"}]`, fish(both)); diff != "" {
		t.Errorf("two managers of one list (-want +got):\n%s", diff)
	}
	if _, err := apply("john", `{"name": "carp", "count": 9}`); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "jane"`) {
		t.Errorf("a field of somebody else's: %v; want a conflict with jane", err)
	}
	forced, err := apply("john", `{"name": "carp", "count": 9}`, client.ForceOwnership)
	must(t, err)
	if diff := cmp.Diff(`[{"count":9,"name":"carp"}]`, fish(forced)); diff != "" {
		t.Errorf("taken over, and what is no longer applied is gone (-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	c, k := newCluster(t)
	must(t, k.Create(t.Context(), configMap("a")))
	w, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "wet!=no",
	})
	must(t, err)
	defer w.Stop()
	var got []string
	for range 2 {
		got = append(got, see(w))
	}
	b := configMap("b")
	must(t, k.Create(t.Context(), b))
	b.Data = map[string]string{"x": "y"}
	must(t, k.Update(t.Context(), b))
	b.Labels = map[string]string{"wet": "no"} // out of sight
	must(t, k.Update(t.Context(), b))
	must(t, k.Delete(t.Context(), b))
	must(t, k.Delete(t.Context(), configMap("a")))
	for range 4 {
		got = append(got, see(w))
	}
	want := []string{"ADDED a", "BOOKMARK end of the beginning", "ADDED b", "MODIFIED b", "DELETED b", "DELETED a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// see describes the next event.
func see(w watch.Interface) string {
	e := <-w.ResultChan()
	m, ok := e.Object.(metav1.Object)
	switch {
	case !ok:
		return string(e.Type)
	case e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		return "BOOKMARK end of the beginning"
	}
	return string(e.Type) + " " + m.GetName()
}

func TestPages(t *testing.T) {
	_, k := newCluster(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		must(t, k.Create(t.Context(), pond(t, name, "")))
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "PondList"})
	var got []string
	for page := client.Continue(""); ; page = client.Continue(list.GetContinue()) {
		must(t, k.List(t.Context(), list, client.Limit(2), page))
		var names []string
		for _, p := range list.Items {
			names = append(names, p.GetName())
		}
		got = append(got, strings.Join(names, " "))
		if len(got) == 1 { // later pages show the cluster of the first
			must(t, k.Create(t.Context(), pond(t, "bb", "")))
		}
		if list.GetContinue() == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"a b", "c d", "e"}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k := newCluster(t)
		start := time.Now()
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "duck.1"},
			InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "duck"},
		}
		must(t, k.Create(t.Context(), event))
		if !event.CreationTimestamp.Time.Equal(start) {
			t.Errorf("created at %s; the bubble's clock says %s", event.CreationTimestamp, start)
		}
		time.Sleep(time.Hour - time.Second)
		if err := k.Get(t.Context(), client.ObjectKeyFromObject(event), event); err != nil {
			t.Errorf("before an hour has gone: %v", err)
		}
		time.Sleep(time.Second)
		if err := k.Get(t.Context(), client.ObjectKeyFromObject(event), event); !apierrors.IsNotFound(err) {
			t.Errorf("after an hour: %v; want not found", err)
		}
	})
}

func TestClustersAreApart(t *testing.T) {
	_, one := newCluster(t)
	two := newClient(t, kubesim.New(t, kubesim.Options{}).Config())
	must(t, one.Create(t.Context(), configMap("a")))
	must(t, one.Create(t.Context(), pond(t, "north", "")))
	if err := two.Get(t.Context(), client.ObjectKeyFromObject(configMap("a")), configMap("a")); !apierrors.IsNotFound(err) {
		t.Errorf("the other cluster's object: %v; want not found", err)
	}
	if err := two.Create(t.Context(), pond(t, "south", "")); !meta.IsNoMatchError(err) {
		t.Errorf("the other cluster's kind: %v; want it to be unknown", err)
	}
	for range 3 { // bubbles, too
		synctest.Test(t, func(t *testing.T) {
			_, k := newCluster(t)
			p := pond(t, "north", "")
			must(t, k.Create(t.Context(), p))
			if got, want := p.GetUID(), types.UID("f8e24acd-0000-4000-8000-000000000001"); got[8:] != want[8:] {
				t.Errorf("UID %s; want it to end like %s in each run", got, want)
			}
		})
	}
}
