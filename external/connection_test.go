package external_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/testenv"
)

// wired are things that others connect to, with a password that the operator chooses, and a token that only the create
// returns.
type wired struct{ named }

func (wired) Connection(t *thing.Thing) external.Connection {
	return external.Connection{To: &api.SecretReference{Name: t.Spec.Connection}, Passwords: []string{"password"}, Once: []string{"token"}}
}

func (w wired) Observe(ctx context.Context, r external.ObserveRequest[*thing.Thing, *cloudClient]) (observation, error) {
	o, err := w.named.Observe(ctx, r)
	o.Have.Password = ""
	o.Details = map[string][]byte{"host": []byte(o.Have.Host)}
	return o, err
}

func (wired) Create(ctx context.Context, r external.CreateRequest[*thing.Thing, *cloudClient]) (external.CreateResponse[item], error) {
	i := item{Size: r.Object.Spec.Size, Tags: r.Mark, Password: r.Passwords["password"]}
	err := r.Client.call(ctx, http.MethodPost, r.ID, &i, nil)
	return external.CreateResponse[item]{Details: map[string][]byte{"token": []byte("one-time")}}, err
}

func (wired) Update(ctx context.Context, r external.UpdateRequest[*thing.Thing, *cloudClient, item]) (external.UpdateResponse[item], error) {
	r.Have.Size = r.Object.Spec.Size
	if r.Changes.Has("connection.password") {
		r.Have.Password = r.Passwords["password"]
	}
	return external.UpdateResponse[item]{}, r.Client.call(ctx, http.MethodPut, r.ID, &r.Have, nil)
}

// hosted are things whose host alone is published.
type hosted struct{ wired }

func (hosted) Connection(t *thing.Thing) external.Connection {
	return external.Connection{To: &api.SecretReference{Name: t.Spec.Connection}}
}

func connected(t *thing.Thing) { t.Spec.Connection = "conn" }

// details returns the Secret "conn".
func (w *operatorTest) details() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.admin.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "conn"}, s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// awaitDetails waits until the Secret "conn" is as ok says.
func (w *operatorTest) awaitDetails(why string, ok func(*corev1.Secret) bool) *corev1.Secret {
	w.t.Helper()
	return testenv.Wait(w.t, w.admin, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}}, why, ok)
}

func (w *operatorTest) patchDetails(body string) {
	w.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}}
	if err := w.admin.Patch(w.t.Context(), s, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T){
		"E0-30 follows the resource":           followsResource,
		"E0-81 before the resource is changed": detailsFirst,
		"E0-83 a password survives a kill":     passwordSurvives,
		"a password is changed":                passwordChanges,
		"in a ConfigMap":                       inConfigMap,
		"a token is lost":                      tokenLost,
		"the token of the next resource":       nextTokenLost,
		"a password in an error":               passwordInError,
		"a password that changes meanwhile":    passwordMeanwhile,
		"of somebody else":                     detailsOfOthers,
		"goes with the object":                 detailsGo,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// followsResource: the Secret has what the API shows, and is written only if that has changed.
func followsResource(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, hosted{}, drifting(100*time.Millisecond))
	w.create(connected)
	w.ready()
	first := w.details()
	if got := string(first.Data["host"]); got != "a.example.org" {
		t.Errorf("host %q", got)
	}
	w.patchDetails(`{"stringData":{"note":"mine"},"metadata":{"labels":{"team":"shop"}}}`)
	mine := w.details()
	w.awaitCalls(http.MethodGet, w.cloud.count(http.MethodGet)+20)
	if now := w.details(); now.ResourceVersion != mine.ResourceVersion {
		t.Errorf("written although nothing has changed: %v, then %v", mine, now)
	}
	polls, after := 0, make(chan string, 1)
	w.cloud.with(func() {
		w.cloud.items["a"].Host = "b.example.org"
		w.cloud.before = func(string, string) { // one call at a time
			if polls++; polls == 2 {
				after <- string(w.details().Data["host"])
			}
		}
	})
	if got := <-after; got != "b.example.org" {
		t.Errorf("after one poll, users see the host %q", got)
	}
	got := w.details()
	if string(got.Data["note"]) != "mine" || got.Labels["team"] != "shop" {
		t.Errorf("what others added is gone: %v", got)
	}
	if err := w.admin.Delete(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	w.awaitDetails("the Secret again", func(s *corev1.Secret) bool { return s.UID != got.UID && string(s.Data["host"]) == "b.example.org" })
}

// noted are things whose host is in a ConfigMap.
type noted struct{ hosted }

func (noted) Connection(t *thing.Thing) external.Connection {
	return external.Connection{To: &api.ConfigMapReference{Name: t.Spec.Connection}}
}

// inConfigMap: details that are no secrets may be in a ConfigMap.
func inConfigMap(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, noted{})
	w.create(connected)
	w.ready()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}}
	testenv.Wait(t, w.admin, m, "the host", func(m *corev1.ConfigMap) bool { return m.Data["host"] == "a.example.org" })
}

// unchangeable are things with a password that nothing can change.
type unchangeable struct{ driver[*thing.Thing] }

func (unchangeable) Connection(t *thing.Thing) external.Connection { return wired{}.Connection(t) }

// TestConnectableMistakes: what cannot work is an error before anything runs.
func TestConnectableMistakes(t *testing.T) {
	t.Parallel()
	connect := func(context.Context) (*cloudClient, error) { return &cloudClient{}, nil }
	_, err := external.New(unchangeable{wired{}}, options{Connect: connect}).Needs(scheme(t))
	if err == nil || !strings.Contains(err.Error(), "has passwords and no Update") {
		t.Errorf("passwords without Update: %v", err)
	}
	if err := external.Nodes(wired{}, options{Connect: connect}).About().Problem; err == nil || !strings.Contains(err.Error(), "is an external.Connectable") {
		t.Errorf("a dependent of a component: %v", err)
	}
}

// detailsFirst: users learn the new host before the resource is changed, and before status says anything.
func detailsFirst(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, hosted{})
	w.create(connected)
	w.ready()
	w.requests.Reset()
	var at string
	w.cloud.with(func() {
		w.cloud.items["a"].Host, w.cloud.items["a"].Size = "b.example.org", 7
		w.cloud.before = func(method, _ string) {
			if method == http.MethodPut {
				at = string(w.details().Data["host"])
			}
		}
	})
	w.poke("now")
	w.await("the drift to be repaired", func(o *thing.Thing) bool { return o.Status.HandledReconcile == "now" && is(o, "Ready", "True") })
	w.awaitCalls(http.MethodPut, 1)
	if at != "b.example.org" {
		t.Errorf("when the resource was changed, users saw the host %q", at)
	}
	var order []string
	for _, r := range w.requests.Select(testenv.Request.IsWrite) {
		if r.Namespace == w.namespace && r.Resource != "events" {
			order = append(order, strings.TrimSpace(r.Resource+" "+r.Subresource))
		}
	}
	if len(order) == 0 || order[0] != "secrets" || slices.Contains(order[1:], "secrets") {
		t.Errorf("writes %v, want the Secret first, once", order)
	}
}

// passwordSurvives: an operator that is killed after it has written the password creates the resource with this one.
func passwordSurvives(t *testing.T) {
	t.Helper()
	w := prepareOperatorTest(t, wired{})
	w.cloud.faulty(func(method, _ string) *answer {
		if method == http.MethodPost {
			return &answer{hang: true}
		}
		return nil
	})
	w.start()
	w.create(connected)
	w.awaitCalls(http.MethodPost, 1)
	before := string(w.details().Data["password"])
	w.cloud.CloseClientConnections()
	w.stop()
	w.cloud.faulty(nil)
	w.start()
	w.ready()
	got := w.details()
	if now := string(got.Data["password"]); before == "" || now != before || w.cloud.get("a").Password != now {
		t.Errorf("the password was %q before, is %q now, and the resource has %q", before, now, w.cloud.get("a").Password)
	}
	w.showsNo(before)
}

// showsNo wants a password in no status, event or trace.
func (w *operatorTest) showsNo(password string) {
	w.t.Helper()
	for _, r := range w.requests.Select(testenv.Request.IsWrite) {
		if r.Resource != "secrets" && strings.Contains(string(r.Body), password) {
			w.t.Errorf("the password is shown: %s", r.Body)
		}
	}
	w.trace.mu.Lock()
	defer w.trace.mu.Unlock()
	if strings.Contains(fmt.Sprintf("%+v", w.trace.list), password) {
		w.t.Error("the password is traced")
	}
}

// passwordChanges: the resource gets the password that is in the Secret, or a new one if it is removed.
func passwordChanges(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, wired{})
	w.create(connected)
	w.ready()
	w.patchDetails(`{"stringData":{"password":"chosen by a user"}}`)
	w.awaitCalls(http.MethodPut, 1)
	w.ready()
	if got := w.cloud.get("a").Password; got != "chosen by a user" {
		t.Errorf("the resource has the password %q", got)
	}
	w.patchDetails(`{"data":{"password":null}}`)
	w.awaitCalls(http.MethodPut, 2)
	got := w.awaitDetails("the new password to be applied", func(s *corev1.Secret) bool {
		return len(s.Data["password"]) > 20 && s.Annotations[api.AnnotationPasswords] != ""
	})
	if w.cloud.get("a").Password != string(got.Data["password"]) {
		t.Error("the resource has another password than the Secret")
	}
	w.resize(3)
	w.ready()
	if n := w.cloud.count(http.MethodPut); n != 3 {
		t.Errorf("%d updates, want one for each change", n)
	}
	if slices.ContainsFunc(w.events(), func(e string) bool { return strings.Contains(e, "outside the operator") }) {
		t.Error("a new password is reported as drift")
	}
}

// tokenLost: an operator that is killed between the answer to the create and the Secret says what is lost, and how to go
// on. Nothing is created again.
func tokenLost(t *testing.T) {
	t.Helper()
	w := prepareOperatorTest(t, wired{})
	w.cloud.faulty(func(method, _ string) *answer {
		if method == http.MethodPost {
			return &answer{hang: true, effect: true}
		}
		return nil
	})
	w.start()
	w.create(connected)
	w.awaitCalls(http.MethodPost, 1)
	w.cloud.CloseClientConnections()
	w.stop()
	w.cloud.faulty(nil)
	w.start()
	lost := `Secret ` + w.namespace + `/conn has no key "token", which the API shows only when it creates the resource; ` +
		`add it there, or delete the object and create it again`
	got := w.await("to say what is lost", func(o *thing.Thing) bool { return condition(o, "Ready").Reason == "ConnectionLost" })
	if got.Status.Message != lost || !is(got, "Stalled", "True") || is(got, "Ready", "True") {
		t.Errorf("message %q, conditions %+v", got.Status.Message, got.Status.Conditions)
	}
	if n := w.cloud.count(http.MethodPost); n != 1 {
		t.Errorf("%d creates", n)
	}
	w.patchDetails(`{"stringData":{"token":"found in a log"}}`)
	w.ready()
	if got := string(w.details().Data["token"]); got != "found in a log" {
		t.Errorf("token %q", got)
	}
}

// nextTokenLost: the token of a resource that is gone is not taken for that of the next one.
func nextTokenLost(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, wired{})
	w.create(connected)
	w.ready()
	w.cloud.with(func() { delete(w.cloud.items, "a") })
	w.cloud.losePosts()
	w.poke("gone")
	w.awaitCalls(http.MethodPost, 2)
	w.stop()
	w.cloud.faulty(nil)
	w.start()
	w.await("to say what is lost", func(o *thing.Thing) bool { return condition(o, "Ready").Reason == "ConnectionLost" })
	if _, found := w.details().Data["token"]; found || w.cloud.count(http.MethodPost) != 2 {
		t.Errorf("the token of the resource that is gone: %t; %d creates", found, w.cloud.count(http.MethodPost))
	}
}

// passwordInError: what the API says of a password is not shown.
func passwordInError(t *testing.T) {
	t.Helper()
	w := prepareOperatorTest(t, wired{})
	w.cloud.faulty(always(http.MethodPost, answer{code: http.StatusServiceUnavailable, body: "cannot CREATE USER IDENTIFIED BY ", echo: true}))
	w.start()
	w.create(connected)
	w.await("the error", func(o *thing.Thing) bool {
		return strings.Contains(o.Status.Message, "IDENTIFIED BY (sensitive)")
	})
	w.showsNo(string(w.details().Data["password"]))
}

// passwordMeanwhile: a password that is changed while the resource is updated is not taken for one that it has.
func passwordMeanwhile(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, wired{})
	w.create(connected)
	w.ready()
	var once sync.Once
	w.cloud.with(func() {
		w.cloud.before = func(method, _ string) {
			if method == http.MethodPut {
				once.Do(func() { w.patchDetails(`{"stringData":{"password":"chosen meanwhile"}}`) })
			}
		}
	})
	w.resize(2)
	w.awaitCalls(http.MethodPut, 2)
	w.ready()
	if got := w.cloud.get("a"); got.Password != "chosen meanwhile" || got.Size != 2 {
		t.Errorf("the resource is %+v", got)
	}
}

// detailsOfOthers: a Secret that is there already is not touched, and nothing is created whose token would be lost.
func detailsOfOthers(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, wired{})
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "conn"}, StringData: map[string]string{"password": "theirs"}}
	if err := w.admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.create(connected)
	w.await("to refuse the Secret", func(o *thing.Thing) bool {
		return condition(o, "Failed").Reason == "PublishConflict" && strings.Contains(o.Status.Message,
			"Secret "+w.namespace+"/conn exists and does not belong to this object; delete it, or name another one")
	})
	if diff := cmp.Diff(theirs.Data, w.details().Data); diff != "" || w.cloud.count(http.MethodPost) > 0 {
		t.Errorf("%d creates; the Secret has changed (-before +after):\n%s", w.cloud.count(http.MethodPost), diff)
	}
	if err := w.admin.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	w.ready()
	if got := string(w.details().Data["token"]); got != "one-time" {
		t.Errorf("token %q", got)
	}
}

// detailsGo: the Secret belongs to the object, so that the garbage collector deletes it.
func detailsGo(t *testing.T) {
	t.Helper()
	w := newOperatorTest(t, wired{})
	w.create(connected)
	w.ready()
	s := w.details()
	if !metav1.IsControlledBy(s, w.get("a")) || s.OwnerReferences[0].BlockOwnerDeletion != nil {
		t.Errorf("owners %+v, want the object, without what needs further permissions", s.OwnerReferences)
	}
}
