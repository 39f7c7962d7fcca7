package simcloud_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/external/simcloud"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	if simcloud.Main() {
		return
	}
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// serve serves a cloud in this process.
func serve(t *testing.T, o simcloud.Options) (*simcloud.Cloud, *simcloud.Client) {
	t.Helper()
	c := simcloud.New(o)
	s := httptest.NewServer(c)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return c, &simcloud.Client{URL: s.URL, HTTP: s.Client()}
}

// code returns the status of an error; 0 if it has none.
func code(err error) int {
	if e, is := errors.AsType[*simcloud.Error](err); is {
		return e.Code
	}
	return 0
}

func TestItems(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cloud, c := serve(t, simcloud.Options{PageSize: 2})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := c.Create(ctx, simcloud.Item{Name: name, Tags: map[string]string{"team": "dock"}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Create(ctx, simcloud.Item{Name: "a"}, ""); code(err) != http.StatusConflict {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := c.Update(ctx, "a", map[string]string{"size": "2"}); err != nil {
		t.Error(err)
	}
	if i, err := c.Get(ctx, "a"); err != nil || i.Properties["size"] != "2" || i.Tags["team"] != "dock" {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := c.SetTags(ctx, "b", nil); err != nil {
		t.Error(err)
	}
	cloud.Put(simcloud.Item{Name: "d", Tags: map[string]string{"team": "dock"}})
	cloud.Put(simcloud.Item{Name: "e", Tags: map[string]string{"team": "dock"}})
	all, err := c.Tagged(ctx, "team", "dock")
	if err != nil || len(all) != 4 {
		t.Errorf("%d items with the tag on pages of two, %v", len(all), err)
	}
	if _, err := c.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
	if _, err := c.Delete(ctx, "a"); code(err) != http.StatusNotFound {
		t.Errorf("deleted twice: %v", err)
	}
	cloud.Remove("b")
	if n := len(cloud.Items()); n != 3 {
		t.Errorf("%d items", n)
	}
	if log := cloud.Log(); log[0].String() != "POST /items 201" || !log[0].Effect || log[3].Status != http.StatusConflict || log[3].Effect {
		t.Errorf("log %v", log)
	}
}

// TestKeys: a key is shown once, and only to who is logged in.
func TestKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cloud, c := serve(t, simcloud.Options{Login: "sesame", Keys: true, Tokens: true})
	if _, err := c.Create(ctx, simcloud.Item{Name: "a"}, "k"); code(err) != http.StatusUnauthorized || len(cloud.Items()) > 0 {
		t.Errorf("without a login: %v", err)
	}
	c.Login = "sesame"
	made, err := c.Create(ctx, simcloud.Item{Name: "a", Key: "mine"}, "k")
	if err != nil || made.Item.Key != "key-of-a" {
		t.Errorf("created: %+v, %v", made, err)
	}
	if again, err := c.Create(ctx, simcloud.Item{Name: "a"}, "k"); err != nil || again.Item.ID != "a" || again.Item.Key != "" {
		t.Errorf("created again: %+v, %v", again, err)
	}
	if i, err := c.Get(ctx, "a"); err != nil || i.Key != "" {
		t.Errorf("read: %+v, %v", i, err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cloud, c := serve(t, simcloud.Options{})
	cloud.Inject(simcloud.Fault{Method: http.MethodPost, Times: 2, Status: http.StatusTooManyRequests, RetryAfter: 1500 * time.Millisecond})
	for range 2 {
		_, err := c.Create(ctx, simcloud.Item{Name: "a"}, "")
		if e, is := errors.AsType[*simcloud.Error](err); !is || e.Code != http.StatusTooManyRequests || e.After != 2*time.Second {
			t.Errorf("throttled: %v", err)
		}
	}
	if len(cloud.Items()) != 0 {
		t.Error("a call that was refused had an effect")
	}
	cloud.Inject(simcloud.Fault{Method: http.MethodPost, Times: 1, Lose: true})
	if _, err := c.Create(ctx, simcloud.Item{Name: "a"}, ""); err == nil || code(err) != 0 || len(cloud.Items()) != 1 {
		t.Errorf("a lost answer: %v, %v", err, cloud.Items())
	}
	cloud.Inject(simcloud.Fault{Prefix: "/items/a", Hang: true})
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := c.Delete(short, "a"); !errors.Is(err, context.DeadlineExceeded) || len(cloud.Items()) != 1 {
		t.Errorf("a call that hangs: %v, %v", err, cloud.Items())
	}
	cloud.Heal()
	cloud.Inject(simcloud.Fault{Status: http.StatusServiceUnavailable})
	for range 3 {
		if _, err := c.Get(ctx, "a"); code(err) != http.StatusServiceUnavailable {
			t.Errorf("down: %v", err)
		}
	}
	cloud.Heal()
	if _, err := c.Get(ctx, "a"); err != nil {
		t.Errorf("healed: %v", err)
	}
	if log := cloud.Log(); log[2].Status != 0 || !log[2].Effect {
		t.Errorf("the lost answer is logged as %+v", log[2])
	}
}

// TestTime is about what takes time, in simulated time.
func TestTime(t *testing.T) {
	t.Parallel()
	inBubble := func(t *testing.T, o simcloud.Options, f func(ctx context.Context, cloud *simcloud.Cloud, c *simcloud.Client)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			cloud := simcloud.New(o)
			f(t.Context(), cloud, &simcloud.Client{URL: "http://cloud", HTTP: &http.Client{Transport: direct{cloud}}})
		})
	}
	t.Run("reads lag behind", func(t *testing.T) {
		inBubble(t, simcloud.Options{Lag: time.Minute}, func(ctx context.Context, cloud *simcloud.Cloud, c *simcloud.Client) {
			_, _ = c.Create(ctx, simcloud.Item{Name: "a", Properties: map[string]string{"size": "1"}}, "")
			if _, err := c.Get(ctx, "a"); code(err) != http.StatusNotFound || len(cloud.Items()) != 1 {
				t.Errorf("just created: %v", err)
			}
			<-time.After(time.Minute)
			_, _ = c.Update(ctx, "a", map[string]string{"size": "2"})
			if i, err := c.Get(ctx, "a"); err != nil || i.Properties["size"] != "1" {
				t.Errorf("just changed: %+v, %v", i, err)
			}
			<-time.After(time.Minute)
			_, _ = c.Delete(ctx, "a")
			if i, err := c.Get(ctx, "a"); err != nil || i.Properties["size"] != "2" {
				t.Errorf("just deleted: %+v, %v", i, err)
			}
			<-time.After(time.Minute)
			if _, err := c.Get(ctx, "a"); code(err) != http.StatusNotFound {
				t.Errorf("deleted: %v", err)
			}
		})
	})
	t.Run("operations", func(t *testing.T) {
		inBubble(t, simcloud.Options{Takes: time.Minute, AssignIDs: true, Tokens: true}, func(ctx context.Context, cloud *simcloud.Cloud, c *simcloud.Client) {
			a, err := c.Create(ctx, simcloud.Item{Name: "a"}, "k")
			if err != nil || a.Operation == "" || len(cloud.Items()) != 0 {
				t.Fatalf("%+v, %v", a, err)
			}
			if again, err := c.Create(ctx, simcloud.Item{Name: "a"}, "k"); err != nil || again.Operation != a.Operation {
				t.Errorf("the same token: %+v, %v", again, err)
			}
			if o, err := c.Operation(ctx, a.Operation); err != nil || o.Done {
				t.Errorf("at once: %+v, %v", o, err)
			}
			<-time.After(time.Minute)
			o, err := c.Operation(ctx, a.Operation)
			if err != nil || !o.Done || len(cloud.Items()) != 1 {
				t.Errorf("after a minute: %+v, %v", o, err)
			}
			if again, err := c.Create(ctx, simcloud.Item{Name: "a"}, "k"); err != nil || again.Item.ID != o.Item || len(cloud.Items()) != 1 {
				t.Errorf("the same token, later: %+v, %v", again, err)
			}
			d, _ := c.Delete(ctx, o.Item)
			e, _ := c.Update(ctx, o.Item, nil)
			<-time.After(time.Minute)
			if gone, err := c.Operation(ctx, d.Operation); err != nil || !gone.Done || gone.Failure != "" {
				t.Errorf("deleted: %+v, %v", gone, err)
			}
			if failed, err := c.Operation(ctx, e.Operation); err != nil || !failed.Done || failed.Failure == "" {
				t.Errorf("an update of what is gone: %+v, %v", failed, err)
			}
		})
	})
	t.Run("the key of an operation", func(t *testing.T) {
		inBubble(t, simcloud.Options{Takes: time.Minute, Keys: true, Tokens: true}, func(ctx context.Context, _ *simcloud.Cloud, c *simcloud.Client) {
			a, _ := c.Create(ctx, simcloud.Item{Name: "a"}, "k")
			if o, err := c.Operation(ctx, a.Operation); err != nil || o.Key != "" {
				t.Errorf("at once: %+v, %v", o, err)
			}
			<-time.After(time.Minute)
			again, _ := c.Create(ctx, simcloud.Item{Name: "a"}, "k")
			if o, err := c.Operation(ctx, again.Operation); err != nil || again.Operation != a.Operation || o.Key != "key-of-a" {
				t.Errorf("by the operation of the same token: %+v, %v", o, err)
			}
			u, _ := c.Update(ctx, "a", nil)
			<-time.After(time.Minute)
			if o, err := c.Operation(ctx, u.Operation); err != nil || !o.Done || o.Key != "" {
				t.Errorf("by an update: %+v, %v", o, err)
			}
		})
	})
	t.Run("a quota", func(t *testing.T) {
		inBubble(t, simcloud.Options{Quota: 2}, func(ctx context.Context, _ *simcloud.Cloud, c *simcloud.Client) {
			var codes []int
			for range 3 {
				_, err := c.Get(ctx, "a")
				codes = append(codes, code(err))
			}
			<-time.After(time.Second)
			_, err := c.Get(ctx, "a")
			if codes = append(codes, code(err)); !slices.Equal(codes, []int{404, 404, 429, 404}) {
				t.Errorf("codes %d", codes)
			}
		})
	})
}

// direct calls a cloud without a network.
type direct struct{ cloud *simcloud.Cloud }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.cloud.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestProcess(t *testing.T) {
	t.Parallel()
	p := simcloud.Start(t, simcloud.Options{AssignIDs: true})
	p.Inject(simcloud.Fault{Method: http.MethodPost, Times: 1, Lose: true})
	if _, err := p.Client().Create(t.Context(), simcloud.Item{Name: "a"}, ""); err == nil {
		t.Error("an answer that should be lost")
	}
	p.Heal()
	p.Put(simcloud.Item{ID: "i-1"})
	if all := p.Items(); len(all) != 2 || all["i-1"].ID == "" {
		t.Errorf("%+v", all)
	}
	p.Remove("i-1")
	if log := p.Log(); len(p.Items()) != 1 || len(log) != 1 || !log[0].Effect {
		t.Errorf("%+v, log %+v", p.Items(), log)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			externaltest.Run(t, kind.driver, fixtureOf(simcloud.Start(t, kind.cloud).Client(), kind.options))
		})
	}
}

func fixtureOf(c *simcloud.Client, o options) externaltest.Fixture[*thing.Thing, *simcloud.Client] {
	return externaltest.Fixture[*thing.Thing, *simcloud.Client]{
		Client: c, Options: o,
		New: func(string) *thing.Thing { return &thing.Thing{Spec: thing.Spec{Size: 1, Tier: "tin"}} },
		Changes: map[string]func(*thing.Thing){
			"size": func(t *thing.Thing) { t.Spec.Size = 2 }, "tier": func(t *thing.Thing) { t.Spec.Tier = "gold" },
		},
	}
}

// TestIDs plays the conformance kit, and a life with lost answers and restarts on a real API server, for each kind of ids.
func TestIDs(t *testing.T) {
	t.Parallel()
	for name, kind := range kinds() {
		if strings.HasPrefix(name, "operations") {
			continue
		}
		t.Run("E0-03 "+name, func(t *testing.T) {
			t.Parallel()
			externaltest.Run(t, kind.driver, fixtureOf(simcloud.Start(t, kind.cloud).Client(), kind.options))
			w := newLife(t, simcloud.Start(t, kind.cloud), kind.driver, kind.options)
			w.play()
		})
	}
}

// life is the life of an object on a real API server.
type life struct {
	t         *testing.T
	cloud     *simcloud.Process
	driver    external.Driver[*thing.Thing, *simcloud.Client, simcloud.Item]
	options   options
	admin     client.WithWatch
	namespace string
	start     func() (stop func())
}

func newLife(t *testing.T, cloud *simcloud.Process, d external.Driver[*thing.Thing, *simcloud.Client, simcloud.Item], o options) *life {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, thing.CRDs)
	w := &life{t: t, cloud: cloud, driver: d, options: o, admin: testenv.Client(t, cfg, thing.AddToScheme), namespace: testenv.Namespace(t, cfg)}
	w.options.Connect = func(context.Context) (*simcloud.Client, error) { return cloud.Client(), nil }
	w.options.CreateGrace, w.options.CallDeadline = 100*time.Millisecond, time.Second
	w.options.Loop.Retry = loop.Retry{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond}
	w.start = func() func() {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, thing.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		mgr, err := ctrl.NewManager(cfg, ctrl.Options{
			Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
			Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := external.New(w.driver, w.options).SetupWithManager(mgr); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("manager: %v", err)
			}
		})
	}
	return w
}

func (w *life) object() *thing.Thing {
	return &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}, Spec: thing.Spec{Size: 1, Tier: "tin"}}
}

// ready waits until the resource is ready for the present spec, and checks that there is one, with these properties.
func (w *life) ready(size, tier string) {
	w.t.Helper()
	testenv.Wait(w.t, w.admin, w.object(), "Ready", func(o *thing.Thing) bool {
		c := apimeta.FindStatusCondition(o.Status.Conditions, "Ready")
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.Generation
	})
	all := w.cloud.Items()
	if len(all) != 1 {
		w.t.Fatalf("%d items: %+v", len(all), all)
	}
	for id, i := range all {
		if i.Properties["size"] != size || i.Properties["tier"] != tier || external.MarkOf(i.Tags)[external.MarkName] != "a" {
			w.t.Errorf("item %q: %+v", id, i)
		}
	}
}

func (w *life) patch(body string) {
	w.t.Helper()
	if err := w.admin.Patch(w.t.Context(), w.object(), client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// play creates, updates, recreates and deletes a resource. The answer to each change is lost once, and the operator restarts
// before it can find out what came of it.
func (w *life) play() {
	w.t.Helper()
	lost := func(method string, act func()) {
		w.t.Helper()
		stop := w.start()
		before := len(w.cloud.Log())
		w.cloud.Inject(simcloud.Fault{Method: method, Times: 1, Lose: true})
		act()
		for !slices.ContainsFunc(w.cloud.Log()[before:], func(r simcloud.Request) bool { return r.Method == method }) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-w.t.Context().Done():
				w.t.Fatalf("there was no %s", method)
			}
		}
		stop()
	}
	lost(http.MethodPost, func() {
		if err := w.admin.Create(w.t.Context(), w.object()); err != nil {
			w.t.Fatal(err)
		}
	})
	stop := w.start()
	w.ready("1", "tin")
	stop()
	lost(http.MethodPut, func() { w.patch(`{"spec":{"size":2}}`) })
	stop = w.start()
	w.ready("2", "tin")
	stop()
	lost(http.MethodDelete, func() { w.patch(`{"spec":{"tier":"gold"}}`) })
	stop = w.start()
	w.ready("2", "gold")
	stop()
	lost(http.MethodDelete, func() {
		if err := w.admin.Delete(w.t.Context(), w.object()); err != nil {
			w.t.Fatal(err)
		}
	})
	stop = w.start()
	testenv.Gone(w.t, w.admin, w.object(), "the object")
	stop()
	if all := w.cloud.Items(); len(all) != 0 {
		w.t.Errorf("left behind: %+v", all)
	}
}
