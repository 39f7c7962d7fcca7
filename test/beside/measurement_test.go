package beside

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/thing"
	"github.com/trimtab-dev/trimtab/operator/operatortest"
	"github.com/trimtab-dev/trimtab/test/beside/internal/cloud"
	"github.com/trimtab-dev/trimtab/test/internal/audit"
	"github.com/trimtab-dev/trimtab/testenv"
)

// load is what both operators are given to do.
type load struct {
	objects, workers int
	// interval is the time between two drift checks of an object, for as long as quiet.
	interval, quiet time.Duration
}

const (
	namespace = "beside"
	// takes is the time of one call of the external API.
	takes = 5 * time.Millisecond
	// users is how many requests of users are under way at a time.
	users = 10
	// settling is how long requests may follow the last status: events, the audit log.
	settling = time.Second
)

// measurement is an operator with its own control plane and its own external API.
type measurement struct {
	t       *testing.T
	load    load
	cluster *controlplane.Cluster
	client  client.WithWatch
	audit   *audit.Log
	cloud   *cloud.Memory
	url     string
	binary  operatortest.Binary
	account operatortest.Account
}

func newMeasurement(t *testing.T, binary operatortest.Binary, l load) *measurement {
	t.Helper()
	log := filepath.Join(t.TempDir(), "audit.log")
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{AuditLog: log, Progress: controlplane.Print(os.Stderr)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	m := &measurement{t: t, load: l, cluster: cluster, audit: audit.Open(t, log), cloud: &cloud.Memory{}, binary: binary}
	m.client = testenv.Client(t, cluster.Config, thing.AddToScheme)
	m.do(m.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	server := httptest.NewServer(m.cloud.Handler(takes))
	t.Cleanup(server.Close)
	m.url, m.account = server.URL, binary.Install(t, cluster.Config, namespace)
	return m
}

func (m *measurement) do(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// start runs the operator until its cache is complete.
func (m *measurement) start(interval time.Duration) *operatortest.Process {
	m.t.Helper()
	p := m.binary.Start(m.t, m.account, "--leader-elect=false", "--cloud="+m.url,
		"--workers="+strconv.Itoa(m.load.workers), "--drift-interval="+interval.String())
	p.Ready()
	return p
}

// pause lets time pass: that nothing happens cannot be waited for.
func (m *measurement) pause(d time.Duration) {
	m.t.Helper()
	select {
	case <-time.After(d):
	case <-m.t.Context().Done():
	}
}

func (m *measurement) object(i int) *thing.Thing {
	return &thing.Thing{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("t%05d", i)}, Spec: thing.Spec{Size: 1}}
}

// each does what users do with every object, and returns after how long done had been true of each.
// done gets nil for an object that does not exist.
func (m *measurement) each(do func(ctx context.Context, i int) error, done func(*thing.Thing) bool) time.Duration {
	m.t.Helper()
	left := map[string]bool{}
	for i := range m.load.objects {
		left[m.object(i).Name] = true
	}
	began := time.Now()
	var wait sync.WaitGroup
	defer wait.Wait()
	for user := range users {
		wait.Go(func() {
			for i := user; i < m.load.objects; i += users {
				if err := do(m.t.Context(), i); err != nil {
					m.t.Errorf("object %d: %v", i, err)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), 5*time.Minute)
	defer cancel()
	for len(left) > 0 {
		if ctx.Err() != nil {
			m.t.Fatalf("%d of %d objects are not done after 5 minutes", len(left), m.load.objects)
		}
		m.follow(ctx, left, done)
	}
	return time.Since(began)
}

// follow removes from left what is done, until nothing is left or the API server ends the watch, as it
// does when it has processed a new CRD.
func (m *measurement) follow(ctx context.Context, left map[string]bool, done func(*thing.Thing) bool) {
	m.t.Helper()
	list := &thing.ThingList{}
	m.do(m.client.List(ctx, list, client.InNamespace(namespace)))
	there := map[string]*thing.Thing{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	maps.DeleteFunc(left, func(name string, _ bool) bool { return done(there[name]) })
	news, err := m.client.Watch(ctx, &thing.ThingList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	m.do(err)
	defer news.Stop()
	for len(left) > 0 {
		e, open := <-news.ResultChan()
		obj, ok := e.Object.(*thing.Thing)
		if !open || !ok {
			return
		}
		if e.Type == watch.Deleted && done(nil) || e.Type != watch.Deleted && done(obj) {
			delete(left, obj.Name)
		}
	}
}

// ready reports whether obj is Ready as its present spec asks.
func ready(obj *thing.Thing) bool {
	if obj == nil {
		return false
	}
	c := meta.FindStatusCondition(obj.Status.Conditions, "Ready")
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == obj.Generation
}

func (m *measurement) createAll() time.Duration {
	m.t.Helper()
	return m.each(func(ctx context.Context, i int) error { return m.client.Create(ctx, m.object(i)) }, ready)
}

func (m *measurement) updateAll() time.Duration {
	m.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`))
	return m.each(func(ctx context.Context, i int) error { return m.client.Patch(ctx, m.object(i), patch) },
		func(obj *thing.Thing) bool { return ready(obj) && obj.Generation > 1 })
}

func (m *measurement) deleteAll() time.Duration {
	m.t.Helper()
	return m.each(func(ctx context.Context, i int) error { return m.client.Delete(ctx, m.object(i)) },
		func(obj *thing.Thing) bool { return obj == nil })
}
