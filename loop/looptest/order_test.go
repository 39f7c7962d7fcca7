package looptest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
)

// settings is a ConfigMap.
func settings(data string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m"}, Data: map[string]string{"a": data}}
}

// TestOrder: handlers get changes in the order of the writes, also beside concurrent readers and writers, and never read an
// older version than that of the change.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(env *Env, lag *Lag){
		"concurrent reads of what was held back": func(env *Env, lag *Lag) {
			lag.Hold()
			for i := range 50 {
				must(t, env.user.Update(t.Context(), settings(fmt.Sprint(i))))
			}
			lag.Release()
			together(8, func(int) { _ = env.process.client.List(t.Context(), &corev1.ConfigMapList{}) })
		},
		"concurrent writes": func(env *Env, _ *Lag) {
			together(8, func(n int) {
				for i := range 10 {
					must(t, env.user.Update(t.Context(), settings(fmt.Sprint(n, " ", i))))
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lag := &Lag{}
			env := NewEnv(t, loop.New[*probe.Probe](keeping{}, loop.Options[*probe.Probe]{}),
				Cluster{AddToScheme: probe.AddToScheme, Objects: []client.Object{settings("")}, Lags: []*Lag{lag}})
			told := &following{t: t, reader: env.process.client}
			informer, err := env.process.view.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			_, err = informer.AddEventHandlerWithOptions(told, toolscache.HandlerOptions{})
			must(t, err)
			play(env, lag)
			env.Settle()
			live := settings("")
			must(t, env.user.Get(t.Context(), client.ObjectKeyFromObject(live), live))
			if got := fmt.Sprint(told.version); got != live.ResourceVersion {
				t.Errorf("the handler was told of version %s at last, want %s", got, live.ResourceVersion)
			}
		})
	}
}

// together runs do in n goroutines.
func together(n int, do func(n int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// following is a handler that reads each object whose change it gets.
type following struct {
	t       *testing.T
	reader  client.Reader
	version int
}

func (f *following) OnAdd(o any, _ bool) { f.see(nil, o) }

func (f *following) OnUpdate(before, o any) { f.see(before, o) }

func (f *following) OnDelete(any) { f.t.Error("told of a deletion") }

func (f *following) see(before, o any) {
	told, _ := o.(*corev1.ConfigMap)
	if b, is := before.(*corev1.ConfigMap); is && version(f.t, b) != f.version {
		f.t.Errorf("told of a change of version %s after version %d", b.ResourceVersion, f.version)
	}
	f.version = version(f.t, told)
	read := settings("")
	if err := f.reader.Get(context.WithoutCancel(f.t.Context()), client.ObjectKeyFromObject(told), read); err != nil || version(f.t, read) < f.version {
		f.t.Errorf("told of version %d, and read %s, %v", f.version, read.ResourceVersion, err)
	}
}

func version(t *testing.T, o client.Object) int {
	t.Helper()
	n, err := strconv.Atoi(o.GetResourceVersion())
	must(t, err)
	return n
}

// slow is a handler that takes a second.
type slow struct{ told int }

func (s *slow) OnAdd(any, bool) { s.take() }

func (s *slow) OnUpdate(any, any) { s.take() }

func (s *slow) OnDelete(any) { s.take() }

func (s *slow) take() {
	<-time.After(time.Second)
	s.told++
}

// TestSettle: the test goes on when handlers were told, whoever tells them.
func TestSettle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := NewEnv(t, loop.New[*probe.Probe](keeping{}, loop.Options[*probe.Probe]{}),
			Cluster{AddToScheme: probe.AddToScheme, Objects: []client.Object{settings("")}})
		handler := &slow{}
		informer, err := env.process.view.GetInformer(t.Context(), &corev1.ConfigMap{})
		must(t, err)
		_, err = informer.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
		must(t, err)
		go func() { must(t, env.user.Update(t.Context(), settings("b"))) }()
		synctest.Wait()
		if env.Settle(); handler.told != 2 {
			t.Errorf("the handler was told of %d changes, want 2", handler.told)
		}
	})
}
