package verify_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/verify"
	"github.com/trimtab-dev/trimtab/internal/shelf"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

const lastApplied = "trimtab.dev/last-applied-spec"

func (w *operatorTest) configMap(name string) *corev1.ConfigMap {
	w.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.admin.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestStates(t *testing.T) {
	t.Parallel()
	t.Run("E1-20 nine states", func(t *testing.T) {
		t.Parallel()
		printed := make(chan struct{})
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1, "Delete": 1}}, func(o *options) {
			o.OnSuccess = func(context.Context, verify.SuccessRequest[*gadget]) error {
				select {
				case <-printed:
					return nil
				default:
					return external.NotReady(errors.New("the label is being printed"), 20*time.Millisecond)
				}
			}
		})
		s := script(w.api)
		states := w.follow()
		s.set("b", func(c shelf.Call) *shelf.Answer {
			if c.Method == "Create" && c.N == 1 {
				return &shelf.Answer{Err: external.Throttled(errors.New("slowly"), 50*time.Millisecond)}
			}
			return nil
		})
		s.set("a", func(c shelf.Call) *shelf.Answer {
			if c.Method == "Update" && c.N == 1 { // and nothing was done
				return &shelf.Answer{Err: external.Ambiguous(errors.New("the line was cut"))}
			}
			return nil
		})
		w.create("b")
		w.await("b", "its first create", func(g *gadget) bool { return g.Status.State != "" })
		w.create("a", func(g *gadget) { g.Spec.ConfigMap = "m" })
		w.is("a", verify.Pending)
		w.configMap("m")
		w.is("a", verify.Completing)
		close(printed)
		w.is("a", verify.Succeeded)
		w.patch("a", `{"spec":{"size":2}}`)
		w.is("a", verify.Succeeded)
		w.patch("a", `{"spec":{"tier":"gold"}}`)
		w.is("a", verify.Succeeded)
		w.api.On(failing("Verify", "a", "no light"))
		w.poke("a", "1")
		w.is("a", verify.Failed)
		w.api.On(nil)
		w.delete("a")
		w.gone("a")
		want := []verify.ReconcileState{
			verify.Pending, verify.Creating, verify.Updating, verify.Verifying, verify.Completing, verify.Succeeded, verify.Recreating, verify.Failed, verify.Terminating,
		}
		w.until("the last state", func() bool { return slices.Contains(states("a"), verify.Terminating) })
		all := slices.Concat(states("a"), states("b"))
		slices.Sort(all)
		slices.Sort(want)
		if got := slices.Compact(all); !slices.Equal(got, want) {
			t.Errorf("the statuses had the states %s, want %s", got, want)
		}
	})
	t.Run("E1-70 the finalizer comes before anything else, and the state is Pending", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		s := script(w.api)
		var first gadget
		s.set("a", func(c shelf.Call) *shelf.Answer {
			if c.N > 1 || c.Method != "Verify" {
				return nil
			}
			if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(w.object("a")), &first); err != nil {
				return &shelf.Answer{Err: err}
			}
			return nil
		})
		states := w.follow()
		w.create("a", func(g *gadget) { g.Spec.ConfigMap = "m" })
		w.is("a", verify.Pending)
		writes := w.requests.Writes("gadgets", w.namespace, "a")
		if len(writes) < 2 || !strings.Contains(string(writes[0].Body), "finalizers") || writes[0].Subresource != "" || writes[1].Subresource != "status" {
			t.Errorf("the writes do not begin with the finalizer and the status: %+v", writes)
		}
		w.configMap("m")
		w.is("a", verify.Succeeded)
		if got := states("a"); got[0] != verify.Pending || w.transitions("a")[0] != verify.Pending {
			t.Errorf("states %s", got)
		}
		if len(first.Finalizers) != 1 || len(w.api.Calls("Verify", "a")) == 0 {
			t.Errorf("when something was called first, the object had the finalizers %q", first.Finalizers)
		}
	})
	t.Run("E1-73 an event for every transition, and none while nothing changes", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1}}, func(o *options) { o.RequeueAfterSuccess = 20 * time.Millisecond })
		states := w.follow()
		w.create("a", func(g *gadget) { g.Spec.ConfigMap = "m" })
		w.is("a", verify.Pending)
		w.configMap("m")
		w.is("a", verify.Succeeded)
		w.api.On(failing("Verify", "a", "no light"))
		w.is("a", verify.Failed)
		w.calls("Verify", "a", len(w.api.Calls("Verify", "a"))+5)
		w.api.On(failing("Verify", "a", "no light in the cellar"))
		w.await("a", "the other words", func(g *gadget) bool { return strings.Contains(g.Status.Message, "in the cellar") })
		w.api.On(nil)
		w.is("a", verify.Succeeded)
		w.calls("Verify", "a", len(w.api.Calls("Verify", "a"))+5)
		w.until("five states", func() bool { return len(states("a")) == 5 })
		w.until("five events", func() bool { return len(w.events("a")) >= 5 })
		all := strings.Join(w.events("a"), "\n")
		for _, note := range []string{"m: it does not exist", "is not ready yet", "matches the spec", "no light"} {
			if !strings.Contains(all, note) {
				t.Errorf("no event says %q: %s", note, all)
			}
		}
		if n := len(w.events("a")); n != 5 {
			t.Errorf("%d events for the states %s: %s", n, states("a"), all)
		}
	})
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	t.Run("E1-31 two dependencies of one name, delivered also on delete", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("same")
		w.create("o")
		m := w.configMap("same")
		for _, name := range []string{"a", "b"} {
			w.create(name, func(g *gadget) { g.Spec.Owner, g.Spec.Gadget, g.Spec.ConfigMap = "o", "same", "same" })
			w.is(name, verify.Succeeded)
		}
		w.patch("a", `{"spec":{"size":2}}`)
		w.is("a", verify.Succeeded)
		w.delete("a")
		w.gone("a")
		all := map[string]string{"owner": "*thing.Gadget o", "gadget": "*thing.Gadget same", "configmap": "*v1.ConfigMap same"}
		seen := map[string]int{}
		for _, c := range w.api.Calls("", "a") {
			if seen[c.Method]++; !maps.Equal(c.Dependencies, all) {
				t.Errorf("%s got %v", c.Method, c.Dependencies)
			}
		}
		for _, method := range []string{"Create", "Verify", "Update", "Delete"} {
			if seen[method] == 0 {
				t.Errorf("%s was not called", method)
			}
		}
		if err := w.admin.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.is("b", verify.Pending)
		w.delete("b") // which a dependency that is gone does not hold back
		w.gone("b")
		delete(all, "configmap")
		if calls := w.api.Calls("Delete", "b"); len(calls) != 1 || !maps.Equal(calls[0].Dependencies, all) {
			t.Errorf("deletes %+v", calls)
		}
	})
	t.Run("an object cannot need itself", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a", func(g *gadget) { g.Spec.Owner = "a" })
		got := w.says("a", verify.Pending, "it is this object, which cannot depend on itself")
		if len(got.OwnerReferences) > 0 {
			t.Errorf("owners %+v", got.OwnerReferences)
		}
	})
	t.Run("a reference to the owner stays as somebody else has written it, and a paused object gets none", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		o := w.create("o")
		want := metav1.OwnerReference{APIVersion: "things.trimtab.dev/v1", Kind: "Gadget", Name: "o", UID: o.UID, Controller: new(true), BlockOwnerDeletion: new(true)}
		w.create("a", func(g *gadget) { g.Spec.Owner, g.OwnerReferences = "o", []metav1.OwnerReference{want} })
		if got := w.is("a", verify.Succeeded); len(got.OwnerReferences) != 1 || !reflect.DeepEqual(got.OwnerReferences[0], want) {
			t.Errorf("owners %+v", got.OwnerReferences)
		}
		w.create("b", annotated("trimtab.dev/paused", "true"), func(g *gadget) { g.Spec.Owner = "o" })
		got := w.await("b", "its condition Paused", func(g *gadget) bool { return apimeta.IsStatusConditionTrue(g.Status.Conditions, "Paused") })
		if len(got.OwnerReferences) > 0 {
			t.Errorf("owners %+v", got.OwnerReferences)
		}
	})
	t.Run("E1-72 who deletes the owner deletes what it owns", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Delete": 1}})
		w.create("o")
		m := w.configMap("another-owner")
		w.create("a", func(g *gadget) {
			g.Spec.Owner = "o"
			g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: m.Name, UID: m.UID}}
		})
		got := w.is("a", verify.Succeeded)
		want := metav1.OwnerReference{APIVersion: "things.trimtab.dev/v1", Kind: "Gadget", Name: "o", UID: w.get("o").UID}
		if len(got.OwnerReferences) != 2 || !reflect.DeepEqual(got.OwnerReferences[1], want) {
			t.Errorf("owners %+v", got.OwnerReferences)
		}
		if err := w.admin.Delete(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.delete("o")
		w.gone("a")
		if w.api.Get("a") != nil || len(w.api.Calls("Delete", "a")) != 1 {
			t.Errorf("%+v is left, deletes %+v", w.api.Get("a"), w.api.Calls("Delete", "a"))
		}
	})
}

func TestAuthor(t *testing.T) {
	t.Parallel()
	t.Run("E1-32 no Kubernetes code", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob("../../internal/shelf/*.go")
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			forbidden := []string{"k8s.io/client-go", "sigs.k8s.io/"}
			if filepath.Base(name) == "shelf.go" { // the ResourceManager; definitions name kinds
				forbidden = append(forbidden, "k8s.io/")
			}
			for _, i := range file.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				if err != nil || slices.ContainsFunc(forbidden, func(f string) bool { return strings.HasPrefix(path, f) }) {
					t.Errorf("%s imports %s", name, path)
				}
			}
		}
	})
	t.Run("E1-33 the definition is one function", func(t *testing.T) {
		t.Parallel()
		if m := reflect.TypeFor[verify.DefinitionManager[*gadget]](); m.NumMethod() != 1 || m.Method(0).Name != "Dependencies" {
			t.Errorf("%d methods", m.NumMethod())
		}
		d := shelf.Definitions{}.Dependencies(&gadget{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: thing.GadgetSpec{Owner: "o", ConfigMap: "m"}})
		if d.Owner.Name != "o" || len(d.Dependencies) != 1 || d.Dependencies[0].Name != "m" {
			t.Errorf("%+v", d)
		}
	})
	t.Run("E1-34 what is missing is an error, not a panic", missingParts)
	t.Run("E1-35 the generated role is sufficient", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Async: map[string]int{"Create": 1, "Update": 1, "Delete": 1}}, func(o *options) { o.Marked = true })
		w.api.Marked = true
		w.create("o")
		w.configMap("m")
		w.create("a", func(g *gadget) { g.Spec.Owner, g.Spec.ConfigMap, g.Spec.Password = "o", "m", "hunter2" })
		w.is("a", verify.Succeeded)
		w.patch("a", `{"spec":{"size":2}}`)
		w.is("a", verify.Succeeded)
		w.patch("a", `{"spec":{"tier":"gold"}}`)
		w.is("a", verify.Succeeded)
		w.delete("a")
		w.gone("a")
		if len(w.events("a")) == 0 {
			t.Error("no events")
		}
		scheme := runtime.NewScheme()
		if err := corev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		operator, err := client.New(w.cfg, client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.PodList{}} { // so it is that role
			if err := operator.List(t.Context(), list); !apierrors.IsForbidden(err) {
				t.Errorf("the operator may read %T: %v", list, err)
			}
		}
	})
}

// nowhere forgets what its objects depend on.
type nowhere struct{}

func (nowhere) Dependencies(*gadget) verify.DependencyDefinitions {
	return verify.DependencyDefinitions{Dependencies: []external.Dependency{{Name: "a"}}}
}

func missingParts(t *testing.T) {
	t.Parallel()
	api, none := &shelf.API{}, verify.NoDependencies[*gadget]{}
	for name, test := range map[string]struct {
		resources   verify.ResourceManager[*gadget]
		definitions verify.DefinitionManager[*gadget]
		options     options
		want        string
	}{
		"no ResourceManager":        {nil, none, options{}, "New needs a ResourceManager"},
		"a nil pointer":             {(*shelf.API)(nil), none, options{}, "New needs a ResourceManager"},
		"no DefinitionManager":      {api, nil, options{}, "New needs a DefinitionManager; pass verify.NoDependencies[*thing.Gadget]{}"},
		"a dependency on nothing":   {api, nowhere{}, options{}, "verify_test.nowhere returns a Dependency without To"},
		"limits that are not valid": {api, none, options{Limits: external.Limits{Access: "all of it"}}, `Options.Limits: access "all of it" is not`},
		"never asked again":         {api, none, options{RequeueAfter: -1}, "Options.RequeueAfter is negative"},
	} {
		if c, err := verify.New(test.resources, test.definitions, test.options); err == nil || c != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := verify.New[external.Object](nil, nil, verify.Options[external.Object]{}); err == nil || !strings.Contains(err.Error(), "New needs the kind of the objects") {
		t.Errorf("no kind: %v", err)
	}
	setUp := func(scheme *runtime.Scheme, o options) error {
		t.Helper()
		cfg := testenv.Start(t)
		testenv.InstallFS(t, cfg, thing.CRDs)
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := verify.New(api, none, o)
		if err != nil {
			t.Fatal(err)
		}
		return c.SetupWithManager(mgr)
	}
	if err := setUp(runtime.NewScheme(), options{}); err == nil || !strings.Contains(err.Error(), "thing.Gadget") {
		t.Errorf("a kind that is not registered: %v", err)
	}
	registered := runtime.NewScheme()
	if err := thing.AddToScheme(registered); err != nil {
		t.Fatal(err)
	}
	var o options
	o.Loop.Finalizer = "not a finalizer"
	if err := setUp(registered, o); err == nil || !strings.Contains(err.Error(), "not a finalizer") {
		t.Errorf("a finalizer that is not valid: %v", err)
	}
}

func TestLastApplied(t *testing.T) {
	t.Parallel()
	written := func(w *operatorTest, why, want string) {
		t.Helper()
		w.await("a", why, func(g *gadget) bool { return g.Annotations[lastApplied] == want })
	}
	t.Run("E1-40 the spec after each create and update, and nothing after one that failed", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a", func(g *gadget) { g.Spec.Tier = "tin" })
		w.is("a", verify.Succeeded)
		spec := func(c shelf.Call) string {
			data, err := json.Marshal(c.Spec)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		written(w, "what was created", spec(w.api.Calls("Create", "a")[0]))
		w.patch("a", `{"spec":{"size":2}}`)
		w.is("a", verify.Succeeded)
		written(w, "what was updated", spec(w.api.Calls("Update", "a")[0]))
		w.api.On(failing("Update", "a", "it is nailed down"))
		w.patch("a", `{"spec":{"size":3}}`)
		w.is("a", verify.Failed)
		written(w, "nothing", "")
		w.api.On(nil)
		w.is("a", verify.Succeeded)
		written(w, "what was updated in the end", `{"size":3,"tier":"tin"}`)
		w.api.On(failing("Create", "a", "no iron left"))
		w.patch("a", `{"spec":{"tier":"iron"}}`)
		w.is("a", verify.Failed)
		written(w, "nothing again", "")
		w.api.On(nil)
		w.is("a", verify.Succeeded)
		written(w, "what was created in the end", `{"size":3,"tier":"iron"}`)
	})
	t.Run("E1-41 a field that the API does not show", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{})
		w.create("a", func(g *gadget) { g.Spec.Password = "first-word" })
		w.is("a", verify.Succeeded)
		w.poke("a", "1")
		w.calls("Verify", "a", 2)
		w.patch("a", `{"spec":{"password":"second-word"}}`)
		w.is("a", verify.Succeeded)
		if got := w.api.Get("a").Password; got != "second-word" || len(w.api.Calls("Update", "a")) != 1 {
			t.Errorf("password %q, %d updates", got, len(w.api.Calls("Update", "a")))
		}
		w.stop()
		w.start()
		w.poke("a", "2")
		w.is("a", verify.Succeeded)
		if n := len(w.api.Calls("Update", "a")); n != 1 {
			t.Errorf("%d updates after a restart", n)
		}
		g := w.get("a")
		if kept := g.Annotations[lastApplied]; !strings.Contains(kept, `"password":"sha256:`) || strings.Contains(kept, "-word") {
			t.Errorf("kept %s", kept)
		}
		for _, e := range w.events("a") {
			if strings.Contains(e, "first-word") || strings.Contains(e, "second-word") {
				t.Errorf("event %s", e)
			}
		}
	})
	t.Run("E1-41 what was not given is given", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Marked: true}, func(o *options) { o.Marked = true })
		given := func(name, why, want string) {
			t.Helper()
			w.until(why, func() bool { i := w.api.Get(name); return i != nil && i.Password == want })
			w.is(name, verify.Succeeded)
		}
		// An annotation that came with the object says nothing about a resource that was there before.
		w.api.Put("a", &shelf.Item{Size: 1, Password: "theirs-0"})
		w.create("a", adopting, annotated(lastApplied, `{"size":1}`), func(g *gadget) { g.Spec.Password = "mine-1" })
		given("a", "the adopted resource to be given the password", "mine-1")
		// Nor does it if somebody puts another resource in its place.
		w.create("b", adopting, func(g *gadget) { g.Spec.Password = "mine-1" })
		given("b", "the password of what was created", "mine-1")
		w.api.Put("b", &shelf.Item{Size: 1, Password: "theirs-1"})
		w.poke("b", "1")
		given("b", "the resource that was adopted later to be given the password", "mine-1")
		// Nor if an older manifest brings it back.
		before := w.get("a")
		w.patch("a", `{"spec":{"password":"mine-2"}}`)
		given("a", "the next password", "mine-2")
		w.stop()
		now := w.get("a")
		now.Spec, now.Annotations[lastApplied] = before.Spec, before.Annotations[lastApplied]
		if err := w.admin.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		w.start()
		given("a", "the first password again", "mine-1")
	})
	t.Run("E1-42 nested data in the payload survive a restart", func(t *testing.T) {
		t.Parallel()
		type place struct {
			Aisle int      `json:"aisle"`
			Rows  []string `json:"rows"`
		}
		type payload struct {
			From  string           `json:"from"`
			Place map[string]place `json:"place"`
		}
		at := func(from string) payload {
			return payload{from, map[string]place{"left": {7, []string{"a", "b"}}}}
		}
		w := newOperatorTest(t, &shelf.API{}, func(o *options) { o.RequeueAfterSuccess = 20 * time.Millisecond })
		w.api.On(func(c shelf.Call) *shelf.Answer {
			switch c.Method {
			case "Create":
				return &shelf.Answer{Apply: verify.ApplyResponse{Result: verify.ApplyResultAwaitingVerification, Payload: at("Create")}, After: true}
			case "Update":
				return &shelf.Answer{Apply: verify.ApplyResponse{Result: verify.ApplyResultSucceeded, Payload: at("Update")}, After: true}
			}
			return nil
		})
		w.create("a")
		w.is("a", verify.Succeeded)
		stored := func(from string) {
			t.Helper()
			var got payload
			found, err := verify.ResourceSpec[*gadget]{Instance: w.get("a")}.Payload(&got)
			if !found || err != nil || !reflect.DeepEqual(got, at(from)) {
				t.Errorf("payload %+v, %t, %v", got, found, err)
			}
		}
		stored("Create")
		w.patch("a", `{"spec":{"size":2}}`)
		w.is("a", verify.Succeeded)
		stored("Update")
		w.stop()
		w.start()
		before := len(w.api.Calls("Verify", "a"))
		w.poke("a", "1")
		w.calls("Verify", "a", before+1)
		calls := w.api.Calls("Verify", "a")
		var got payload
		if err := json.Unmarshal([]byte(calls[len(calls)-1].Payload), &got); err != nil || !reflect.DeepEqual(got, at("Update")) {
			t.Errorf("Verify got %+v, %v", got, err)
		}
		w.api.On(func(c shelf.Call) *shelf.Answer {
			return &shelf.Answer{Verify: verify.VerifyResponse{Result: isReady, Payload: at("Update")}}
		})
		n := len(w.api.Calls("Verify", "a"))
		w.calls("Verify", "a", n+3)
		writes := len(w.requests.Writes("gadgets", w.namespace, "a"))
		w.calls("Verify", "a", n+8)
		for _, r := range w.requests.Writes("gadgets", w.namespace, "a")[writes:] {
			t.Errorf("a write while nothing changed: %s %s", r, r.Body)
		}
		for what, payload := range map[string]any{"too long": strings.Repeat("x", 70<<10), "no JSON": func() {}} {
			w.api.On(func(shelf.Call) *shelf.Answer {
				return &shelf.Answer{Verify: verify.VerifyResponse{Result: isReady, Payload: payload}}
			})
			w.poke("a", what)
			w.says("a", verify.Verifying, "its payload cannot be stored")
		}
		w.delete("a") // which a payload does not hold back
		w.calls("Delete", "a", 1)
		w.api.On(nil)
		w.gone("a")
	})
	t.Run("E1-42 with marks, and nil pointers", func(t *testing.T) {
		t.Parallel()
		w := newOperatorTest(t, &shelf.API{Marked: true}, func(o *options) { o.Marked, o.RequeueAfterSuccess = true, 20*time.Millisecond })
		w.create("a")
		w.is("a", verify.Succeeded)
		w.api.On(func(c shelf.Call) *shelf.Answer {
			if c.Method == "Update" {
				return &shelf.Answer{Apply: verify.ApplyResponse{Result: verify.ApplyResultSucceeded, Payload: "from Update"}, After: true}
			}
			return nil
		})
		w.patch("a", `{"spec":{"size":2}}`)
		w.await("a", "the payload", func(g *gadget) bool { return string(g.Status.Payload.Raw) == `"from Update"` })
		w.is("a", verify.Succeeded)
		mark := w.api.Get("a").Mark
		w.api.On(func(shelf.Call) *shelf.Answer {
			return &shelf.Answer{Verify: verify.VerifyResponse{Result: isReady, Payload: (*string)(nil), Mark: mark}}
		})
		n := len(w.api.Calls("Verify", "a"))
		w.calls("Verify", "a", n+3)
		writes := len(w.requests.Writes("gadgets", w.namespace, "a"))
		w.calls("Verify", "a", n+8)
		for _, r := range w.requests.Writes("gadgets", w.namespace, "a")[writes:] {
			t.Errorf("a write while nothing changed: %s %s", r, r.Body)
		}
	})
}
