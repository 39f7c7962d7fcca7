package external_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// markable are things that can be marked when they exist.
type markable struct{ named }

func (markable) Mark(ctx context.Context, r external.MarkRequest[*thing.Thing, *cloudClient]) (external.MarkResponse, error) {
	var i item
	if err := r.Client.call(ctx, http.MethodGet, r.ID, nil, &i); err != nil {
		return external.MarkResponse{}, err
	}
	i.Tags = r.Mark.On(external.Unmark(i.Tags))
	return external.MarkResponse{}, r.Client.call(ctx, http.MethodPut, r.ID, &i, nil)
}

// markIn is the mark that an object in the test's namespace would have in a cluster.
func (w *operatorTest) markIn(cluster, uid, name string) external.Mark {
	return external.Mark{
		external.MarkUID: uid, external.MarkKind: "Thing.things.trimtab.dev", external.MarkNamespace: w.namespace,
		external.MarkName: name, external.MarkIncarnation: "1", external.MarkCluster: cluster,
	}
}

func (w *operatorTest) cluster() string {
	w.t.Helper()
	ns := &corev1.Namespace{}
	if err := testenv.Client(w.t, w.cfg).Get(w.t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, ns); err != nil {
		w.t.Fatal(err)
	}
	return string(ns.UID)
}

// says waits until "a" fails for a reason, and wants a text in the message.
func (w *operatorTest) says(reason, text string) {
	w.t.Helper()
	if got := condition(w.failing(reason), "Failed").Message; !strings.Contains(got, text) {
		w.t.Errorf("message %q, want %q in it", got, text)
	}
}

// A copy of an object in another cluster does not get the thing of the first: not by its
// record, not by any policy but one that names the owner.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, markable{})
	theirs := item{Size: 7, State: "ONLINE", Tags: w.markIn("other-cluster", "u0", "a")}
	w.cloud.put("a", theirs)
	record := `{"id":"a","inc":1,"uid":"u0","create":{"at":"2026-01-05T10:11:12Z","by":"p"},"cluster":"other-cluster","object":"` + w.namespace + `/a"}`
	w.create(annotated(api.AnnotationExternal, record))
	t.Run("a copy with its record", func(t *testing.T) {
		w.says("NotOurs", "in another cluster (other-cluster)")
		w.says("NotOurs", `"from:u0"`)
	})
	t.Run("and a policy that takes all", func(t *testing.T) {
		w.annotate(api.AnnotationAdoption, "always")
		w.poke("1")
		w.until(func() bool { return w.get("a").Status.HandledReconcile == "1" })
		w.says("NotOurs", "in another cluster")
	})
	t.Run("and a record that says so", func(t *testing.T) {
		own := w.get("a").Annotations[api.AnnotationExternal]
		w.annotate(api.AnnotationExternal, strings.Replace(own, `,"cluster"`, `,"adopted":"u0","cluster"`, 1))
		w.poke("2")
		w.until(func() bool { return w.get("a").Status.HandledReconcile == "2" })
		w.says("NotOurs", "in another cluster")
	})
	t.Run("nor is it deleted", func(t *testing.T) {
		w.delete()
		w.gone()
		wantCalls(t, w, "none")
		if got := w.cloud.get("a"); got == nil || got.Tags[external.MarkUID] != "u0" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a cluster that is gone can be replaced", func(t *testing.T) {
		obj := w.create(annotated(api.AnnotationAdoption, "from:u0"))
		w.ready()
		got := w.cloud.get("a")
		if got.Size != 1 || got.Tags[external.MarkUID] != string(obj.UID) || got.Tags[external.MarkCluster] != w.cluster() {
			t.Errorf("%+v", got)
		}
	})
}

// What was taken over says so: two objects cannot have one thing, and the object that has it
// needs no annotation any more.
func TestAdoptionMarks(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, markable{})
	w.cloud.put("a", item{Size: 7, State: "ONLINE", Tags: map[string]string{"team": "shop"}})
	obj := w.create(annotated(api.AnnotationAdoption, "always"))
	w.ready()
	got := w.cloud.get("a")
	if got.Tags[external.MarkUID] != string(obj.UID) || got.Tags["team"] != "shop" || got.Size != 1 {
		t.Errorf("%+v", got)
	}
	wantCalls(t, w, "the mark, then the size", "PUT a", "PUT a")
	w.createAs("b", func(o *thing.Thing) { o.Spec.Name = "a"; o.Spec.Size = 3 }, annotated(api.AnnotationAdoption, "always"))
	b := w.awaitAs("b", "NotOurs", func(o *thing.Thing) bool { return condition(o, "Failed").Reason == "NotOurs" })
	if text := condition(b, "Failed").Message; !strings.Contains(text, "belongs to Thing "+w.namespace+"/a") {
		t.Errorf("message %q", text)
	}
	w.remove("b")
	if !w.until(func() bool { return apiGone(w, "b") }) || w.cloud.get("a") == nil {
		t.Error("the second object took the thing with it")
	}
	w.patch(`{"metadata":{"annotations":{"trimtab.dev/adoption":null}},"spec":{"size":4}}`)
	w.stop()
	w.start()
	w.ready()
	w.delete()
	w.gone()
	if w.cloud.get("a") != nil {
		t.Error("the thing is still there")
	}
}

// An object that is restored where it was gets its own thing back.
func TestRestoredWhereItWas(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, markable{})
	w.create()
	backup := w.ready()
	w.stop()
	w.patch(`{"metadata":{"finalizers":null}}`)
	w.delete()
	w.gone()
	w.start()
	obj := w.create(annotated(api.AnnotationExternal, backup.Annotations[api.AnnotationExternal]))
	w.ready()
	if got := w.cloud.get("a"); got.Tags[external.MarkUID] != string(obj.UID) || w.cloud.count("POST") != 1 {
		t.Errorf("%+v, calls %v", got, w.cloud.calls(false))
	}
}

// A copy under another name has a thing of its own.
func TestCopyUnderAnotherName(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	first := w.ready()
	w.createAs("b", annotated(api.AnnotationExternal, first.Annotations[api.AnnotationExternal]))
	w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
	if w.cloud.get("b") == nil {
		t.Errorf("calls %v", w.cloud.calls(false))
	}
	w.remove("b")
	if !w.until(func() bool { return apiGone(w, "b") }) || w.cloud.get("a") == nil || w.cloud.get("b") != nil {
		t.Errorf("calls %v", w.cloud.calls(false))
	}
}

// Objects of another installation are left entirely alone.
func TestInstallations(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, named{})
	w.terms.Installation = "one"
	w.start()
	w.create()
	w.ready()
	w.stop()
	w.terms.Installation = "two"
	w.start()
	w.requests.Reset()
	w.resize(5)
	w.delete()
	w.createAs("b")
	w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
	w.quiet(300 * time.Millisecond)
	if got := w.writes("a"); len(got) != 0 || w.cloud.get("a").Size != 1 {
		t.Errorf("writes %v, calls %v", got, w.cloud.calls(false))
	}
	w.stop()
	w.terms.Installation = "one"
	w.start()
	w.gone()
	if w.cloud.get("a") != nil {
		t.Error("the thing is still there")
	}
}

// A copy of another installation's object, in a namespace of ours, is ours: nobody else works
// on it. What is restored where it was stays the other's.
func TestCopyFromAnotherInstallation(t *testing.T) {
	t.Parallel()
	for name, unmarked := range map[string]bool{"with marks": false, "without marks": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := prepareOperatorTest(t, named{}, func(o *options) { o.Unmarked = unmarked })
			w.terms.Installation = "one"
			w.start()
			theirs := func(object string) func(*thing.Thing) {
				return annotated(api.AnnotationExternal, `{"id":"x","inc":1,"uid":"u0","create":{"at":"2026-01-05T10:11:12Z","by":"p"},"cluster":"`+
					w.cluster()+`","installation":"two","object":"`+object+`"}`)
			}
			w.createAs("b", theirs(w.namespace+"/b"))
			w.create(theirs("elsewhere/a"))
			w.ready()
			w.delete()
			w.gone()
			if got := w.writes("b"); len(got) != 0 {
				t.Errorf("writes %v to an object of the other installation", got)
			}
		})
	}
}

// A thing stays with the endpoint at which it was made.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, named{}, func(o *options) {
		o.Endpoint = func(_ context.Context, c *cloudClient) (string, error) { return "account at " + c.base, nil }
	})
	w.start()
	w.create()
	w.ready()
	wantWrites(t, w, "the endpoint costs no write", "patch", "apply status")
	first := w.cloud
	w.stop()
	w.cloud = newCloud(t)
	w.start()
	t.Run("nothing is made elsewhere", func(t *testing.T) {
		w.resize(5)
		w.says("EndpointChanged", `"a" was created at account at `+first.URL+", but the operator now connects to account at "+w.cloud.URL)
	})
	t.Run("and nothing is let go", func(t *testing.T) {
		w.createAs("b", func(o *thing.Thing) { o.Finalizers = []string{"example.org/keeps"} })
		w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
		w.delete()
		w.await("EndpointChanged", func(o *thing.Thing) bool { return condition(o, "Deleting").Reason == "EndpointChanged" })
		if calls := w.cloud.calls(true); strings.Contains(strings.Join(calls, ","), " a") {
			t.Errorf("calls %v", calls)
		}
	})
	t.Run("until somebody says to leave it", func(t *testing.T) {
		w.annotate(api.AnnotationEndpoint, "account at "+w.cloud.URL)
		w.gone()
		if first.get("a") == nil {
			t.Error("the thing at the first endpoint was deleted")
		}
	})
	t.Run("or to start over", func(t *testing.T) {
		w.stop()
		second := w.cloud
		w.cloud = newCloud(t)
		w.start()
		body := `{"metadata":{"annotations":{"trimtab.dev/endpoint":"account at ` + w.cloud.URL + `"}}}`
		b := &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "b"}}
		if err := w.admin.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
			t.Fatal(err)
		}
		w.awaitAs("b", "ready, the second time", func(o *thing.Thing) bool {
			return is(o, "Ready", "True") && o.Status.External != nil && o.Status.External.Incarnation == 2
		})
		if w.cloud.get("b") == nil || second.get("b") == nil {
			t.Error("the thing is not at both endpoints")
		}
	})
}

// An operator that begins to tell endpoints apart pins that of what it sees.
func TestEndpointPinnedAfterwards(t *testing.T) {
	t.Parallel()
	w := newOperatorTest(t, named{})
	w.create()
	w.ready()
	w.stop()
	w.options.Endpoint = func(_ context.Context, c *cloudClient) (string, error) { return c.base, nil }
	w.requests.Reset()
	w.start()
	w.await("the endpoint in the record", func(o *thing.Thing) bool {
		return strings.Contains(o.Annotations[api.AnnotationExternal], `"endpoint":"`+w.cloud.URL+`"`)
	})
	w.resize(2)
	w.ready()
	wantWrites(t, w, "the record once, and the new size", "patch", "apply status")
	w.stop()
	first := w.cloud
	w.cloud = newCloud(t)
	w.start()
	w.delete()
	w.await("EndpointChanged", func(o *thing.Thing) bool { return condition(o, "Deleting").Reason == "EndpointChanged" })
	if calls := w.cloud.calls(true); len(calls) != 0 || first.get("a") == nil {
		t.Errorf("calls %v", calls)
	}
}

// The endpoint is not known while nothing answers; it is pinned before the first create.
func TestEndpointPinnedLater(t *testing.T) {
	t.Parallel()
	var up bool
	w := prepareOperatorTest(t, named{}, func(o *options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context) (*cloudClient, error) {
			if !up {
				return nil, context.DeadlineExceeded
			}
			return connect(ctx)
		}
		o.Endpoint = func(context.Context, *cloudClient) (string, error) { return "east", nil }
	})
	w.start()
	w.create()
	w.failing("ConnectFailed")
	if r := w.get("a").Annotations[api.AnnotationExternal]; strings.Contains(r, `"endpoint":`) {
		t.Errorf("record %s", r)
	}
	w.stop()
	up = true
	w.start()
	w.ready()
	if r := w.get("a").Annotations[api.AnnotationExternal]; !strings.Contains(r, `"endpoint":"east"`) || w.cloud.count("POST") != 1 {
		t.Errorf("record %s, calls %v", r, w.cloud.calls(false))
	}
}

// What annotations ask for is bounded, and the message says who can allow it.
func TestLimits(t *testing.T) {
	t.Parallel()
	w := prepareOperatorTest(t, named{}, func(o *options) { o.Limits = external.Limits{Deletion: "orphan", Access: "CU"} })
	w.start()
	w.cloud.put("a", item{Size: 7, State: "ONLINE"})
	w.create(annotated(api.AnnotationAdoption, "always"))
	t.Run("adoption", func(t *testing.T) {
		w.says("NotOurs", "with --adoption-limit "+w.namespace+"=always")
		if got := condition(w.get("a"), "PolicyInvalid"); !strings.Contains(got.Message, `"always" is more than the operator allows here`) {
			t.Errorf("PolicyInvalid %+v", got)
		}
	})
	t.Run("things stay unless it is said", func(t *testing.T) {
		w.createAs("b")
		w.awaitAs("b", "ready", func(o *thing.Thing) bool { return is(o, "Ready", "True") })
		w.remove("b")
		if !w.until(func() bool { return apiGone(w, "b") }) || w.cloud.get("b") == nil {
			t.Errorf("calls %v", w.cloud.calls(false))
		}
	})
	t.Run("who runs the operator decides of adoption", func(t *testing.T) {
		w.stop()
		w.terms = loop.Terms{Adoption: loop.Limit{w.namespace: "always"}, Access: loop.Limit{"": "CUD"}}
		w.start()
		w.ready()
	})
	t.Run("and can only take rights away", func(t *testing.T) {
		w.annotate(api.AnnotationDeletion, "delete")
		w.delete()
		w.gone()
		if w.cloud.get("a") == nil {
			t.Error("deleted without permission")
		}
	})
}
