package actor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// cluster is one that tests write to and in which actors act.
type cluster struct {
	t      *testing.T
	server *apiserver.Server
	db     *store.DB
	actors *Actors
	uids   map[string]string // by name
}

// newCluster has Stones, as they are defined by default or by the definitions given.
func newCluster(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) *cluster {
	t.Helper()
	if definitions == nil {
		definitions = append(definitions, stone())
	}
	server, err := apiserver.New(definitions)
	if err != nil {
		t.Fatal(err)
	}
	db := server.Begin()
	if err := apiserver.Populate(db); err != nil {
		t.Fatal(err)
	}
	return &cluster{t, server, db, New(server, db), map[string]string{}}
}

// stone is a custom kind.
func stone() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "stones.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "stones", Singular: "stone", Kind: "Stone", ListKind: "StoneList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// send makes a request as an administrator; path is below the API's root.
func (w *cluster) send(method, path string, body any) map[string]any {
	w.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, "http://kubesim"+path, bytes.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}}
	if method == http.MethodPatch {
		r.Header = http.Header{"Content-Type": {"application/merge-patch+json"}}
	}
	answer, err := (&apiserver.Transport{Server: w.server, Client: apiserver.Client{DB: w.db}}).RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 400 {
		w.t.Fatalf("%s %s: %s %s %v", method, path, answer.Status, text, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// owner is "name" of an object made before, with "!" in front if it is blocked by the
// dependent; a name that was never made is one that is gone.
func (w *cluster) owners(owners []string) []any {
	var refs []any
	for _, o := range owners {
		name, blocks := strings.CutPrefix(o, "!")
		ref := map[string]any{"apiVersion": kindOf(name)[0], "kind": kindOf(name)[1], "name": name, "uid": "gone-" + name}
		if uid, ok := w.uids[name]; ok {
			ref["uid"] = uid
		}
		if blocks {
			ref["blockOwnerDeletion"] = true
		}
		refs = append(refs, ref)
	}
	return refs
}

// make creates a ConfigMap, or a Stone if the name says so.
func (w *cluster) make(name string, owners ...string) { w.makeIn("default", name, nil, owners...) }

func (w *cluster) makeIn(namespace, name string, finalizers []string, owners ...string) {
	w.t.Helper()
	created := w.send(http.MethodPost, strings.TrimSuffix(path(namespace, name), "/"+name), map[string]any{
		"apiVersion": kindOf(name)[0], "kind": kindOf(name)[1],
		"metadata": map[string]any{"name": name, "ownerReferences": w.owners(owners), "finalizers": finalizers},
	})
	w.uids[name] = created["metadata"].(map[string]any)["uid"].(string)
}

func kindOf(name string) [2]string {
	if strings.HasPrefix(name, "stone") {
		return [2]string{"example.com/v1", "Stone"}
	}
	return [2]string{"v1", "ConfigMap"}
}

func path(namespace, name string) string {
	if strings.HasPrefix(name, "stone") {
		return "/apis/example.com/v1/namespaces/" + namespace + "/stones/" + name
	}
	return "/api/v1/namespaces/" + namespace + "/configmaps/" + name
}

// own gives an object other owners.
func (w *cluster) own(name string, owners ...string) {
	w.t.Helper()
	w.send(http.MethodPatch, path("default", name), map[string]any{"metadata": map[string]any{"ownerReferences": w.owners(owners)}})
}

func (w *cluster) delete(name string, policy metav1.DeletionPropagation) {
	w.t.Helper()
	w.send(http.MethodDelete, path("default", name), map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy})
}

// settle lets the actors do all they want, always the first thing, and returns what it was.
func (w *cluster) settle() []string {
	w.t.Helper()
	var did []string
	for range 50 {
		enabled := w.actors.Enabled()
		if len(enabled) == 0 {
			return did
		}
		did = append(did, enabled[0].What)
		if err := enabled[0].Do(w.t.Context()); err != nil {
			w.t.Fatalf("%s: %v", enabled[0].What, err)
		}
	}
	w.t.Fatalf("the actors never end:\n%s", strings.Join(did, "\n"))
	return nil
}

// left lists the ConfigMaps and Stones with their owners.
func (w *cluster) left() []string {
	w.t.Helper()
	var left []string
	for _, p := range []string{"/api/v1/configmaps", "/apis/example.com/v1/stones"} {
		items, _ := w.send(http.MethodGet, p, nil)["items"].([]any)
		for _, item := range items {
			m := item.(map[string]any)["metadata"].(map[string]any)
			s := m["name"].(string)
			refs, _ := m["ownerReferences"].([]any)
			for _, ref := range refs {
				s += " <- " + ref.(map[string]any)["name"].(string)
			}
			if f, ok := m["finalizers"]; ok {
				s += fmt.Sprint(" ", f)
			}
			left = append(left, s)
		}
	}
	slices.Sort(left)
	return left
}

func TestGarbage(t *testing.T) {
	tests := map[string]struct {
		why  string
		do   func(*cluster)
		want []string
		left []string
	}{
		"nothing to do": {
			why:  "owners that exist hold what they own",
			do:   func(w *cluster) { w.make("a"); w.make("b", "a"); w.make("c") },
			left: []string{"a", "b <- a", "c"},
		},
		"background": {
			why: "the owner goes at once, then what it owned, generation by generation",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "a")
				w.make("c", "b")
				w.delete("a", metav1.DeletePropagationBackground)
			},
			want: []string{
				"delete configmaps default/b, whose owner is gone",
				"delete configmaps default/c, whose owner is gone",
			},
		},
		"never existed": {
			why:  "a reference to nothing is a reference to something gone",
			do:   func(w *cluster) { w.make("b", "a") },
			want: []string{"delete configmaps default/b, whose owner is gone"},
		},
		"same name, other object": {
			why:  "owners are known by UID",
			do:   func(w *cluster) { w.make("b", "a"); w.make("a") },
			want: []string{"delete configmaps default/b, whose owner is gone"},
			left: []string{"a"},
		},
		"another namespace": {
			why:  "an owner in another namespace is absent",
			do:   func(w *cluster) { w.make("a"); w.makeIn("kube-public", "b", nil, "a") },
			want: []string{"delete configmaps kube-public/b, whose owner is gone"},
			left: []string{"a"},
		},
		"one of two owners is gone": {
			why:  "the other holds it; the dead reference goes",
			do:   func(w *cluster) { w.make("a"); w.make("c", "a", "b") },
			want: []string{"drop owners of configmaps default/c that are gone"},
			left: []string{"a", "c <- a"},
		},
		"one of two owners is gone, custom kind": {
			why:  "custom resources take another patch",
			do:   func(w *cluster) { w.make("a"); w.make("stone", "a", "b") },
			want: []string{"drop owners of stones.example.com default/stone that are gone"},
			left: []string{"a", "stone <- a"},
		},
		"orphan": {
			why: "dependents are freed before the owner goes",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "a")
				w.make("stone", "!a")
				w.delete("a", metav1.DeletePropagationOrphan)
			},
			want: []string{
				"free configmaps default/b from configmaps default/a, which goes without it",
				"free stones.example.com default/stone from configmaps default/a, which goes without it",
				"remove finalizer orphan of configmaps default/a",
			},
			left: []string{"b", "stone"},
		},
		"foreground": {
			why: "the owner waits for what blocks it",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "!a")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{
				"delete configmaps default/b, whose owner waits for it",
				"remove finalizer foregroundDeletion of configmaps default/a",
			},
		},
		"foreground without blocking": {
			why: "what does not block is collected later or earlier, as it comes",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "a")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{
				"remove finalizer foregroundDeletion of configmaps default/a",
				"delete configmaps default/b, whose owner is gone",
			},
		},
		"foreground, deep": {
			why: "a dependent with dependents waits for them in turn",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "!a")
				w.make("c", "!b")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{
				"delete configmaps default/b and its dependents, whose owner waits for it",
				"delete configmaps default/c, whose owner waits for it",
				"remove finalizer foregroundDeletion of configmaps default/b",
				"remove finalizer foregroundDeletion of configmaps default/a",
			},
		},
		"foreground, held by another": {
			why: "an owner that stays holds it; the one that waits is let go",
			do: func(w *cluster) {
				w.make("a")
				w.make("b")
				w.make("c", "!a", "b")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{
				"drop owners of configmaps default/c that are gone",
				"remove finalizer foregroundDeletion of configmaps default/a",
			},
			left: []string{"b", "c <- b"},
		},
		"foreground, dependent with a finalizer": {
			why: "the owner waits for as long as somebody holds the dependent",
			do: func(w *cluster) {
				w.make("a")
				w.makeIn("default", "b", []string{"example.com/hold"}, "!a")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{"delete configmaps default/b, whose owner waits for it"},
			left: []string{"a [foregroundDeletion]", "b <- a [example.com/hold]"},
		},
		"deleted owner that does not wait": {
			why: "an owner that somebody else holds still holds what it owns",
			do: func(w *cluster) {
				w.makeIn("default", "a", []string{"example.com/hold"})
				w.make("b", "a")
				w.delete("a", metav1.DeletePropagationBackground)
			},
			left: []string{"a [example.com/hold]", "b <- a"},
		},
		"circle, background": {
			why: "nothing holds the rest of a broken circle",
			do: func(w *cluster) {
				w.make("a")
				w.make("b", "a")
				w.own("a", "b")
				w.delete("a", metav1.DeletePropagationBackground)
			},
			want: []string{"delete configmaps default/b, whose owner is gone"},
		},
		"circle, foreground": {
			why: "a circle whose members block each other is cut",
			do: func(w *cluster) {
				w.make("a")
				w.make("stone", "!a")
				w.own("a", "!stone")
				w.delete("a", metav1.DeletePropagationForeground)
			},
			want: []string{
				"let stones.example.com default/stone no longer block its owners",
				"remove finalizer foregroundDeletion of configmaps default/a",
				"delete stones.example.com default/stone, whose owner is gone",
			},
		},
		"unserved kind": {
			why: "what cannot be looked up may exist",
			do: func(w *cluster) {
				w.makeIn("default", "b", nil)
				w.send(http.MethodPatch, path("default", "b"), map[string]any{"metadata": map[string]any{"ownerReferences": []any{
					map[string]any{"apiVersion": "no.example.com/v1", "kind": "Such", "name": "x", "uid": "y"},
				}}})
			},
			left: []string{"b <- x"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newCluster(t)
			test.do(w)
			if d := cmp.Diff(test.want, w.settle()); d != "" {
				t.Errorf("%s: actions (-want +got):\n%s", test.why, d)
			}
			if d := cmp.Diff(test.left, w.left()); d != "" {
				t.Errorf("%s: left (-want +got):\n%s", test.why, d)
			}
		})
	}
}

func TestNamespaceGoesWithItsContent(t *testing.T) {
	w := newCluster(t)
	w.send(http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "n"}})
	w.makeIn("n", "a", nil)
	w.makeIn("n", "b", nil, "a")
	w.makeIn("n", "stone", []string{"example.com/hold"})
	w.make("other")
	w.send(http.MethodPost, "/api/v1/namespaces/n/events", map[string]any{
		"metadata": map[string]any{"name": "e"}, "involvedObject": map[string]any{"namespace": "n"},
	})
	w.send(http.MethodDelete, "/api/v1/namespaces/n", nil)

	want := []string{
		"delete all configmaps in namespace n", "delete all events in namespace n", "delete all stones.example.com in namespace n",
	}
	if d := cmp.Diff(want, sorted(w.settle())); d != "" {
		t.Errorf("actions while a finalizer holds (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"other", "stone [example.com/hold]"}, w.left()); d != "" {
		t.Errorf("left while a finalizer holds (-want +got):\n%s", d)
	}
	w.send(http.MethodPatch, path("n", "stone"), map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if d := cmp.Diff([]string{"finalize namespace n"}, w.settle()); d != "" {
		t.Errorf("actions when nothing holds (-want +got):\n%s", d)
	}
	if _, is := w.db.Row("/namespaces/n"); is {
		t.Error("the namespace is still there")
	}
}

func TestClaimsStayWhileTheyAreUsed(t *testing.T) {
	w := newCluster(t)
	claims, pods := "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/namespaces/default/pods"
	w.send(http.MethodPost, claims, map[string]any{"metadata": map[string]any{"name": "c"}, "spec": map[string]any{
		"accessModes": []string{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}})
	w.send(http.MethodPost, "/api/v1/persistentvolumes", map[string]any{"metadata": map[string]any{"name": "v"}, "spec": map[string]any{
		"accessModes": []string{"ReadWriteOnce"}, "capacity": map[string]any{"storage": "1Gi"}, "hostPath": map[string]any{"path": "/v"},
	}})
	w.send(http.MethodPost, pods, map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"nodeName":                      "n",
		"terminationGracePeriodSeconds": 0,
		"containers":                    []any{map[string]any{"name": "c", "image": "i"}},
		"volumes":                       []any{map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": "c"}}},
	}})
	w.send(http.MethodDelete, claims+"/c", nil)
	w.send(http.MethodDelete, "/api/v1/persistentvolumes/v", nil)
	want := []string{"let go of persistentvolumes v, which nobody uses"}
	if d := cmp.Diff(want, w.settle()); d != "" {
		t.Errorf("actions while a pod uses the claim (-want +got):\n%s", d)
	}
	w.send(http.MethodDelete, pods+"/p?gracePeriodSeconds=0", nil)
	want = []string{"let go of persistentvolumeclaims default/c, which nobody uses"}
	if d := cmp.Diff(want, w.settle()); d != "" {
		t.Errorf("actions when the pod is gone (-want +got):\n%s", d)
	}
	if left, _ := w.db.Under("/persistentvolume"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestClaimsOfPodsThatNeverRanGo(t *testing.T) {
	w := newCluster(t)
	claims := "/api/v1/namespaces/default/persistentvolumeclaims"
	w.send(http.MethodPost, claims, map[string]any{"metadata": map[string]any{"name": "c"}, "spec": map[string]any{
		"accessModes": []string{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}})
	w.send(http.MethodPost, "/api/v1/namespaces/default/pods", map[string]any{"metadata": map[string]any{"name": "p"}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i"}},
		"volumes":    []any{map[string]any{"name": "v", "persistentVolumeClaim": map[string]any{"claimName": "c"}}},
	}})
	w.send(http.MethodDelete, claims+"/c", nil)
	want := []string{"let go of persistentvolumeclaims default/c, which nobody uses"}
	if d := cmp.Diff(want, w.settle()); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
}

func TestPodsLeaveANamespaceFirst(t *testing.T) {
	w := newCluster(t)
	w.send(http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "n"}})
	w.makeIn("n", "a", nil)
	w.send(http.MethodPost, "/api/v1/namespaces/n/pods", map[string]any{
		"metadata": map[string]any{"name": "p", "finalizers": []string{"example.com/hold"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
	})
	w.send(http.MethodDelete, "/api/v1/namespaces/n", nil)
	if d := cmp.Diff([]string{"delete all pods in namespace n"}, w.settle()); d != "" {
		t.Errorf("actions while a pod is there (-want +got):\n%s", d)
	}
	w.send(http.MethodPatch, "/api/v1/namespaces/n/pods/p", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if d := cmp.Diff([]string{"delete all configmaps in namespace n", "finalize namespace n"}, w.settle()); d != "" {
		t.Errorf("actions then (-want +got):\n%s", d)
	}
}

func TestEventsAreNoGarbage(t *testing.T) {
	w := newCluster(t)
	w.send(http.MethodPost, "/api/v1/namespaces/default/events", map[string]any{
		"metadata": map[string]any{"name": "e", "ownerReferences": w.owners([]string{"a"})}, "involvedObject": map[string]any{"namespace": "default"},
	})
	if did := w.settle(); did != nil {
		t.Errorf("actions: %q", did)
	}
}

// An action that fails or changes nothing must not be done for ever.
func TestFailedActionIsNotOfferedAgain(t *testing.T) {
	w := newCluster(t)
	_ = w.actors.Enabled()
	broken := errors.New("broken")
	w.actors.add("somebody", []write{
		{"fail", func(context.Context) error { return broken }},
		{"come too late", func(context.Context) error { return apierrors.NewConflict(corev1.Resource("pods"), "p", broken) }},
	})
	for i, want := range []error{broken, nil} {
		enabled := w.actors.Enabled()
		if len(enabled) != 2-i {
			t.Fatalf("offered: %d, want %d", len(enabled), 2-i)
		}
		if err := enabled[0].Do(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", enabled[0].What, err, want)
		}
	}
	if again := w.actors.Enabled(); len(again) != 0 {
		t.Errorf("offered again: %v", again[0].What)
	}
}

// Kinds may come and go while a cluster lives.
func TestGarbageOfKindsThatCameLater(t *testing.T) {
	server, err := apiserver.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	db := store.New()
	if err := apiserver.Populate(db); err != nil {
		t.Fatal(err)
	}
	w := &cluster{t, server, db, New(server, db), map[string]string{}}
	if did := w.settle(); did != nil {
		t.Errorf("actions in an empty cluster: %q", did)
	}
	w.send(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", stone())
	w.make("stone")
	w.make("b", "stone")
	w.make("stone2", "a", "stone")
	want := []string{"drop owners of stones.example.com default/stone2 that are gone"}
	if d := cmp.Diff(want, w.settle()); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	w.delete("stone", metav1.DeletePropagationBackground)
	want = []string{
		"delete configmaps default/b, whose owner is gone",
		"delete stones.example.com default/stone2, whose owner is gone",
	}
	if d := cmp.Diff(want, w.settle()); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
}

// Controllers use the version that discovery prefers, whose defaults are written with what they
// patch.
func TestWritesThroughThePreferredVersion(t *testing.T) {
	crd := stone()
	for _, v := range []struct {
		name, color string
		served      bool
	}{{"v2", "blue", true}, {"v1beta1", "red", true}, {"v3", "green", false}} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v.name, Served: v.served,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"color": {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"` + v.color + `"`)}},
				},
			}},
		})
	}
	w := newCluster(t, crd)
	w.makeIn("default", "stone", []string{"example.com/keep"})
	w.delete("stone", metav1.DeletePropagationOrphan)
	if d := cmp.Diff([]string{"remove finalizer orphan of stones.example.com default/stone"}, w.settle()); d != "" {
		t.Errorf("actions (-want +got):\n%s", d)
	}
	if got := w.send(http.MethodGet, path("default", "stone"), nil)["color"]; got != "blue" {
		t.Errorf("color %v, want blue, the default of v2", got)
	}
}

// An action is computed from a cluster that may be another when it is done.
func TestOvertakenActionDoesNothing(t *testing.T) {
	w := newCluster(t)
	w.make("b", "a")
	late := w.actors.Enabled()
	if len(late) != 1 {
		t.Fatalf("enabled: %v, want one", late)
	}
	w.own("b")
	rev := w.db.Revision()
	if err := late[0].Do(t.Context()); err != nil {
		t.Errorf("overtaken: %v", err)
	}
	if w.db.Revision() != rev || len(w.actors.Enabled()) != 0 {
		t.Errorf("an overtaken deletion changed something: %v", w.left())
	}
}

func TestEachWorldHasItsOwnActors(t *testing.T) {
	w := newCluster(t)
	w.make("b", "a")
	fork := *w
	fork.db = w.db.Snapshot().Open()
	fork.actors = New(fork.server, fork.db)
	want := []string{"delete configmaps default/b, whose owner is gone"}
	if d := cmp.Diff(want, fork.settle()); d != "" {
		t.Errorf("fork (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"b <- a"}, w.left()); d != "" {
		t.Errorf("original (-want +got):\n%s", d)
	}
}

func sorted(s []string) []string { slices.Sort(s); return s }
