package children_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/trimtab-dev/trimtab/children"
	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
)

// TestWhy: why objects get a finalizer is in the log at the start and in the manifests, and not a word if they get none.
func TestWhy(t *testing.T) {
	t.Parallel()
	far := children.Named("far", configOf("far")).Elsewhere()
	clean := tidier{composer{nil, func(context.Context, *loop.Run[*probe.Probe]) {}}, nil}
	tests := map[string]struct {
		why  string
		set  func() *children.Set[*probe.Probe]
		o    options
		want string
	}{
		"none":       {"garbage collection does it", func() *children.Set[*probe.Probe] { return children.Of(config1()) }, options{}, ""},
		"protected":  {"someone must release it", func() *children.Set[*probe.Probe] { return children.Of(config1().Protected()) }, options{}, `child "config" is protected`},
		"elsewhere":  {"someone must delete it", func() *children.Set[*probe.Probe] { return children.Of(config1(), far) }, options{}, `garbage collection does not reach child "far"`},
		"manual":     {"someone must delete it", func() *children.Set[*probe.Probe] { return children.Of(config1()) }, options{ManualOwnerRefs: true}, "children have no owner references"},
		"two things": {"both count", func() *children.Set[*probe.Probe] { return children.Of(far.Protected()) }, options{Reconciler: clean}, `the controller cleans up before an object is deleted, and child "far" is protected, and garbage collection does not reach it`},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := operator.Manifests(operator.Options{
				Name: "probes", AddToScheme: probe.AddToScheme, CRDs: probe.CRDs,
				Controllers: func() ([]operator.Controller, error) {
					return []operator.Controller{children.New(tt.set(), tt.o)}, nil
				},
			}, operator.ManifestOptions{})
			w.do(err)
			said, want := "", ""
			for _, o := range objects {
				if d, ok := o.(*appsv1.Deployment); ok {
					said = d.Annotations[operator.AnnotationFinalizers]
				}
			}
			if tt.want != "" {
				want = "Probe: " + finalizer + ", because " + tt.want
			}
			if said != want {
				t.Errorf("%s: the manifests say %q, want %q", tt.why, said, want)
			}
			var mu sync.Mutex
			var logged []string
			w.log = funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				logged = append(logged, args)
			}, funcr.Options{})
			w.do(children.New(tt.set(), tt.o).SetupWithManager(w.manager()))
			mu.Lock()
			defer mu.Unlock()
			all := strings.ReplaceAll(strings.Join(logged, "\n"), `\"`, `"`)
			if has := strings.Contains(all, `"finalizer"="`+finalizer); has != (tt.want != "") || !strings.Contains(all, tt.want) {
				t.Errorf("%s: logged\n%s", tt.why, all)
			}
		})
	}
}
