package component_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

// fleet renders the same number of dependents for each component, and counts the passes. Its version is
// asked for in each pass.
type fleet struct {
	// objects are how many dependents a component has. Every tenth is a Secret, the others are ConfigMaps,
	// of which the share large has 20 KiB.
	objects int
	large   float64

	mu     sync.Mutex
	passes map[string]int
}

func (f *fleet) Render(_ context.Context, r component.RenderRequest[*bundle.Bundle]) (component.Set, error) {
	var set component.Set
	for i := range f.objects {
		name := fmt.Sprintf("%s-%d", r.Name, i)
		if i%10 == 9 {
			set.Add(&corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: name},
				Data: map[string][]byte{"rendered": []byte(name)},
			})
			continue
		}
		value := "1"
		if float64(i) < f.large*float64(f.objects) {
			value = strings.Repeat("0123456789abcdef", 20<<10/16)
		}
		set.Add(configMap(name, value))
	}
	return set, nil
}

// Version implements component.Versioned.
func (f *fleet) Version() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passes["all"]++
	return "1"
}

func (f *fleet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passes["all"]
}

// deep reports whether the long forms of tests are to run.
func deep() bool { return os.Getenv("TRIMTAB_DEEP") != "" }

// ownCluster is a control plane that this test alone uses.
func ownCluster(t *testing.T) *rest.Config {
	t.Helper()
	binary, err := controlplane.Binary(t.Context(), controlplane.Print(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := controlplane.Start(t.Context(), controlplane.Options{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	return cluster.Config
}

// newFleet runs an operator whose components are all ready.
func newFleet(t *testing.T, cfg *rest.Config, components int, f *fleet, change ...func(*options)) *bench {
	t.Helper()
	f.passes = map[string]int{}
	b := prepareBenchOn(t, cfg, change...)
	b.renderer = f
	b.start()
	for i := range components {
		b.createAs(fmt.Sprintf("c%03d", i))
	}
	for i := range components {
		b.awaitLong(fmt.Sprintf("c%03d", i), 20*time.Minute)
	}
	return b
}

// awaitLong waits until a component is ready that may take long.
func (b *bench) awaitLong(name string, most time.Duration) {
	b.t.Helper()
	deadline := time.Now().Add(most)
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for now := time.Now(); ; now = <-ticks.C {
		obj := &bundle.Bundle{}
		if err := b.admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, obj); err != nil {
			b.t.Fatal(err)
		}
		switch {
		case isReady(obj):
			return
		case now.After(deadline):
			b.t.Fatalf("%s is not ready after %s: %s", name, most, obj.Status.Message)
		}
	}
}

// quiet fails the test if the operator sent a request other than watches and that of its lease.
func (b *bench) quiet() {
	b.t.Helper()
	for _, r := range b.requests.All() {
		if r.Verb != "watch" && r.Resource != "leases" {
			b.t.Errorf("request %s", r)
		}
	}
}

// TestQuiet: components that are ready cost no request, however often a timer has them reconciled.
func TestQuiet(t *testing.T) {
	t.Parallel()
	t.Run("timer passes over several components", func(t *testing.T) {
		t.Parallel()
		f := &fleet{objects: 20}
		b := newFleet(t, testenv.Start(t), 5, f, func(o *options) { o.RequeueInterval = 10 * time.Millisecond })
		f.await(t, 20)
		b.requests.Reset()
		f.await(t, 500)
		b.quiet()
	})
	t.Run("B-1 ten minutes over 100 components of 100 objects", func(t *testing.T) {
		if !deep() {
			t.Skip("takes more than ten minutes; set TRIMTAB_DEEP=1")
		}
		f := &fleet{objects: 100}
		b := newFleet(t, ownCluster(t), 100, f, func(o *options) { o.RequeueInterval = 10 * time.Second })
		f.await(t, 100)
		b.requests.Reset()
		before := f.count()
		<-time.After(10 * time.Minute)
		b.quiet()
		passes := f.count() - before
		t.Logf("%d passes in ten minutes, and %d watches begun", passes, len(b.requests.All()))
		if passes < 5_000 { // one in ten seconds and component would be 6,000
			t.Errorf("%d passes in ten minutes, want 5,000 at least", passes)
		}
	})
}

// await waits for more passes.
func (f *fleet) await(t *testing.T, passes int) {
	t.Helper()
	until := f.count() + passes
	within(t, fmt.Sprintf("%d passes", passes), func() bool { return f.count() >= until })
}

// settled is how much of the heap is in use when it no longer shrinks: what is left of an operator that was
// stopped, or of a request that was answered, goes some time later.
func settled() uint64 {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	least := heap()
	for same := 0; same < 5; same++ {
		<-ticks.C
		if now := heap(); now+4096 < least {
			least, same = now, 0
		}
	}
	return least
}

// heap is how much of the heap is in use.
func heap() uint64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory: what an operator keeps of its dependents does not depend on what they contain. It is not
// parallel because it measures the heap of the process.
func TestMemory(t *testing.T) { //nolint:paralleltest // see above
	t.Run("bytes per dependent", func(t *testing.T) {
		const few, many = 20, 120
		const most = 2_000 // so few are not measured exactly; many need 1,100 each
		measure := func(components, objects int, most uint64) uint64 {
			before := settled()
			f := &fleet{objects: objects, large: 0.4}
			b := newFleet(t, testenv.Start(t), components, f, func(o *options) { o.RequeueInterval = time.Hour })
			b.requests.Reset()
			var used uint64
			poll.Until(func() bool { // what is left of requests goes, what is kept stays
				after := settled()
				used = after - min(before, after)
				return used <= most
			})
			if path := os.Getenv("TRIMTAB_HEAP"); path != "" {
				profileHeap(t, path)
			}
			b.stop()
			return used
		}
		measure(1, few, math.MaxUint64) // what is made once
		first := measure(5, few, math.MaxUint64)
		second := measure(5, many, first+5*(many-few)*most)
		each := (float64(second) - float64(first)) / (5 * (many - few))
		t.Logf("%d bytes for %d dependents, %d for %d: %.0f each", first, 5*few, second, 5*many, each)
		if each > most {
			t.Errorf("%.0f bytes for each dependent, want %d at most", each, most)
		}
	})
	t.Run("B-3 50,000 dependents", func(t *testing.T) {
		if !deep() {
			t.Skip("takes many minutes; set TRIMTAB_DEEP=1")
		}
		before := heap()
		f := &fleet{objects: 500, large: 0.4}
		b := newFleet(t, ownCluster(t), 100, f, func(o *options) { o.RequeueInterval = time.Hour })
		b.requests.Reset()
		used := heap() - before
		t.Logf("%.1f MiB for 50,000 dependents", float64(used)/(1<<20))
		if used > 60<<20 {
			t.Errorf("%.1f MiB, want 60 at most", float64(used)/(1<<20))
		}
		if path := os.Getenv("TRIMTAB_HEAP"); path != "" {
			profileHeap(t, path)
		}
		noValues(t, b)
	})
	t.Run("no value of a Secret that is not rendered", func(t *testing.T) {
		b := newFleet(t, testenv.Start(t), 1, &fleet{objects: 10}, func(o *options) { o.RequeueInterval = time.Hour })
		noValues(t, b)
	})
}

// profileHeap writes a profile of the heap to a file, for go tool pprof.
func profileHeap(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pprof.WriteHeapProfile(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// noValues has another process write a value into a Secret of a component that the component does not
// render, and fails the test if the heap has it afterwards. This process never has the value: it would
// be found.
func noValues(t *testing.T, b *bench) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "c000-9"}}
	if err := b.admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	admin := testenv.User(t, b.cfg, everything())
	marker(t, "write", "KUBECONFIG="+testenv.Kubeconfig(t, admin), "NAMESPACE="+b.namespace, "NAME="+secret.Name)
	within(t, "the operator to notice", func() bool {
		return len(b.requests.Select(func(r testenv.Request) bool { return r.Verb == "get" && r.Name == secret.Name })) > 0
	})
	b.awaitLong("c000", poll.Patience)
	known := strings.Repeat("known", 3) + b.namespace
	var found string
	if !poll.Until(func() bool {
		b.overwriteBuffers()
		found = marker(t, "count", "DUMP="+heapDump(t), "KNOWN="+known)
		return found == "0 and known"
	}) {
		t.Errorf("found %s, want 0 and known", found)
	}
	runtime.KeepAlive(known)
}

// overwriteBuffers makes the operator read 64 KiB. The buffers of a connection keep the last response until
// they are used again, which at rest can take for ever.
func (b *bench) overwriteBuffers() {
	b.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "c000-0"}}
	reads := func() int {
		return len(b.requests.Select(func(r testenv.Request) bool { return r.Verb == "get" && r.Name == object.Name }))
	}
	before := reads()
	change := fmt.Appendf(nil, `{"data":{"foreign":"%0*d"}}`, 64<<10, before)
	if err := b.admin.Patch(b.t.Context(), object, client.RawPatch(types.MergePatchType, change)); err != nil {
		b.t.Fatal(err)
	}
	within(b.t, "the operator to read "+object.Name, func() bool { return reads() > before })
}

// heapDump writes what is in the heap into a file.
func heapDump(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "heap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	heap()
	debug.WriteHeapDump(f.Fd())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// markerTask is the environment variable that makes the test binary the other process of noValues.
const markerTask = "TRIMTAB_TEST_MARKER"

// marker runs the other process and returns what it says.
func marker(t *testing.T, task string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), markerTask+"="+task), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", task, err, out)
	}
	return string(out)
}

// markerProcess writes the value, or counts how often a file has it.
func markerProcess(task string) int {
	value := []byte(strings.Repeat("secret-", 8) + "value")
	if task == "count" {
		dump, err := os.ReadFile(os.Getenv("DUMP"))
		if err != nil {
			return 1
		}
		n := bytes.Count(dump, value) + bytes.Count(dump, []byte(base64.StdEncoding.EncodeToString(value)))
		known := "unknown"
		if bytes.Contains(dump, []byte(os.Getenv("KNOWN"))) {
			known = "known"
		}
		fmt.Printf("%d and %s", n, known)
		return 0
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return 1
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return 1
	}
	body, err := json.Marshal(map[string]any{"data": map[string][]byte{"foreign": value}})
	if err != nil {
		return 1
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: os.Getenv("NAMESPACE"), Name: os.Getenv("NAME")}}
	if err := c.Patch(context.Background(), secret, client.RawPatch(types.MergePatchType, body)); err != nil { //nolint:forbidigo // a process, not a test
		fmt.Println(err)
		return 1
	}
	return 0
}
