package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	v1 "github.com/trimtab-dev/trimtab/samples/cloud/api/v1"
	"github.com/trimtab-dev/trimtab/testenv"
)

// asOperator makes the test binary the operator.
const asOperator = "TRIMTAB_TEST_AS_CLOUD_OPERATOR"

func TestMain(m *testing.M) {
	if simcloud.Main() {
		return
	}
	if os.Getenv(asOperator) != "" {
		main()
	}
	os.Exit(m.Run())
}

// hard is the cloud that the operator is for.
func hard(takes time.Duration) simcloud.Options {
	return simcloud.Options{AssignIDs: true, Tokens: true, Keys: true, Login: "open sesame", Takes: takes}
}

func TestConformance(t *testing.T) {
	cloud := simcloud.Start(t, hard(10*time.Millisecond))
	externaltest.Run(t, instances{}, externaltest.Fixture[instance, client]{
		Client:  &simcloud.Client{URL: cloud.URL, Login: "open sesame"},
		Options: external.Options[instance, client]{AssignedIDs: true, Tokens: true},
		New:     func(string) instance { return &v1.Instance{Spec: v1.InstanceSpec{Size: "small"}} },
		Changes: map[string]func(instance){"size": func(i instance) { i.Spec.Size = "large" }},
	})
}

// TestSize: the operator is small, beside the client of its API and what is generated.
func TestSize(t *testing.T) {
	lines := 0
	for _, file := range []string{"main.go", "api/v1/instance.go"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if strings.TrimSpace(line) != "" {
				lines++
			}
		}
	}
	if lines > 150 {
		t.Errorf("%d lines that are not blank", lines)
	}
}

// operatorTest is an operator process with a namespace on a real API server, and a cloud in another process.
type operatorTest struct {
	t         *testing.T
	client    kube.WithWatch
	namespace string
	cloud     *simcloud.Process
	account   operatortest.Account
	operator  *operatortest.Process
}

func newOperatorTest(t *testing.T, o simcloud.Options) *operatorTest {
	t.Helper()
	cfg := testenv.Start(t)
	ot := &operatorTest{t: t, client: testenv.Client(t, cfg, v1.AddToScheme), namespace: testenv.Namespace(t, cfg), cloud: simcloud.Start(t, o)}
	ot.account = operatortest.Self(asOperator).Install(t, cfg, ot.namespace, "--watch-namespaces", ot.namespace)
	ot.do(ot.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: "login"}, StringData: map[string]string{"value": o.Login},
	}))
	return ot
}

func (ot *operatorTest) start() {
	ot.t.Helper()
	ot.operator = operatortest.Self(asOperator).Start(ot.t, ot.account, "--cloud", ot.cloud.URL, "--leader-elect=false", "--watch-namespaces", ot.namespace)
}

func (ot *operatorTest) do(err error) {
	ot.t.Helper()
	if err != nil {
		ot.t.Fatal(err)
	}
}

func (ot *operatorTest) instance(name string) *v1.Instance {
	return &v1.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: name},
		Spec: v1.InstanceSpec{
			Size: "small", Login: api.SecretKeyReference{Name: "login"}, Connection: api.SecretReference{Name: name + "-connection"},
		},
	}
}

func ready(i *v1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, api.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == i.Generation
}

// whole wants each object to be Ready with an instance and a key of its own, and nothing else in the cloud.
func (ot *operatorTest) whole(names []string) {
	ot.t.Helper()
	var objects []*v1.Instance
	for _, name := range names {
		objects = append(objects, testenv.Wait(ot.t, ot.client, ot.instance(name), "it to be Ready", ready))
	}
	left := ot.cloud.Items()
	for _, i := range objects {
		item, exists := left[i.Status.External.ID]
		delete(left, i.Status.External.ID)
		if !exists || item.Properties["size"] != i.Spec.Size {
			ot.t.Errorf("%s is Ready with instance %q: %+v", i.Name, i.Status.External.ID, item)
		}
		secret := &corev1.Secret{}
		ot.do(ot.client.Get(ot.t.Context(), kube.ObjectKey{Namespace: ot.namespace, Name: i.Name + "-connection"}, secret))
		want := map[string][]byte{"id": []byte(item.ID), "key": []byte("key-of-" + item.ID)}
		if diff := cmp.Diff(want, secret.Data); diff != "" {
			ot.t.Errorf("the Secret of %s (-want +got):\n%s", i.Name, diff)
		}
	}
	if len(left) > 0 {
		ot.t.Errorf("%d instances belong to nobody: %v", len(left), slices.Sorted(maps.Keys(left)))
	}
}

// TestLogin: without the Secret, nothing is called and the object says which one is missing; a new one is noticed.
func TestLogin(t *testing.T) {
	ot := newOperatorTest(t, hard(10*time.Millisecond))
	ot.start()
	i := ot.instance("a")
	i.Spec.Login.Name = "another"
	ot.do(ot.client.Create(t.Context(), i))
	want := "cannot connect to the external API: Secret " + ot.namespace + "/another does not exist; create it; retrying"
	i = testenv.Wait(t, ot.client, i, "it to miss the Secret", func(i *v1.Instance) bool { return i.Status.Message == want })
	if c := meta.FindStatusCondition(i.Status.Conditions, api.ConditionFailed); c == nil || c.Reason != "ConnectFailed" || len(ot.cloud.Log()) > 0 {
		t.Errorf("Failed is %+v, calls %v", c, ot.cloud.Log())
	}
	ot.do(ot.client.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: "another"}, StringData: map[string]string{"value": "open sesame"},
	}))
	testenv.Wait(t, ot.client, i, "it to be Ready", ready)
}

// TestKills kills the operator again and again, shortly after one of the calls that follow when users create, change and
// delete. In the end each object has one instance
// with its key, and none is left behind.
func TestKills(t *testing.T) {
	kills := 10
	if os.Getenv("TRIMTAB_DEEP") == "1" {
		kills = 50
	}
	ot := newOperatorTest(t, hard(100*time.Millisecond))
	random := rand.New(rand.NewPCG(1, 1))
	var names []string
	for kill := range kills {
		ot.start()
		ot.operator.Ready()
		if kill%7 == 3 { // an answer is lost as well
			ot.cloud.Inject(simcloud.Fault{Method: "POST", Times: 1, Lose: true})
		}
		name := fmt.Sprintf("a%d", kill)
		ot.do(ot.client.Create(t.Context(), ot.instance(name)))
		names = append(names, name)
		if n := len(names); n > 3 {
			changed := &v1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: names[random.IntN(n)]}}
			size := []string{"small", "medium", "large"}[random.IntN(3)]
			ot.do(ot.client.Patch(t.Context(), changed, kube.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":"`+size+`"}}`))))
			gone := random.IntN(n)
			ot.do(ot.client.Delete(t.Context(), &v1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: ot.namespace, Name: names[gone]}}))
			names = slices.Delete(names, gone, gone+1)
		}
		ot.afterCalls(1 + random.IntN(8))
		ot.operator.Kill()
	}
	ot.start()
	for _, i := range ot.all() {
		if !i.DeletionTimestamp.IsZero() {
			testenv.Gone(t, ot.client, &i, "it to be gone")
		}
	}
	ot.whole(names)
	for _, i := range ot.all() {
		ot.do(ot.client.Delete(t.Context(), &i))
	}
	for _, i := range ot.all() {
		testenv.Gone(t, ot.client, &i, "it to be gone")
	}
	if left := ot.cloud.Items(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	ot.operator.Stop()
	t.Logf("%d kills, %d calls of the cloud", kills, len(ot.cloud.Log()))
}

// afterCalls returns when the cloud has got so many more calls, or no more come.
func (ot *operatorTest) afterCalls(n int) {
	ot.t.Helper()
	began, last, since := len(ot.cloud.Log()), 0, time.Now()
	poll.Until(func() bool {
		now := len(ot.cloud.Log())
		if now != last {
			last, since = now, time.Now()
		}
		return now >= began+n || time.Since(since) > 2*time.Second
	})
}

func (ot *operatorTest) all() []v1.Instance {
	ot.t.Helper()
	list := &v1.InstanceList{}
	ot.do(ot.client.List(ot.t.Context(), list, kube.InNamespace(ot.namespace)))
	return list.Items
}
