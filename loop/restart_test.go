package loop_test

import (
	"context"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr/funcr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/testenv"
)

// many is how many objects a restart meets.
const many = 50

// converge runs a controller over many objects named p0 and so on, until the status of all is written, and stops it.
func converge(t *testing.T, w *controllerTest, o options, do func(*run) loop.Outcome) {
	t.Helper()
	c := newCounter(do)
	w.start(c, o)
	for n := range many {
		w.create(fmt.Sprintf("p%d", n))
	}
	for n := range many {
		w.await(fmt.Sprintf("p%d", n), "to be Ready", ready)
	}
	w.stop()
}

// TestRestart proves what is reconciled when a process starts.
func TestRestart(t *testing.T) {
	t.Parallel()
	once := options{Revision: "1", MaxInterval: -1}
	t.Run("002-34 what has not changed is not", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, once, nil)
		c := newCounter[*probe.Probe](nil)
		w.requests.Reset()
		w.start(c, once)
		c.silent(t, 10*time.Second)
		if writes := w.probeWrites(); len(writes) != 0 {
			t.Errorf("written: %v", writes)
		}
		w.patch("p6", `{"spec":{"size":6}}`)
		c.await(t, 1) // the others are still looked after
		w.await("p6", "its new spec", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		w.stop()

		w.patch("p7", `{"spec":{"size":7}}`)
		down := newCounter[*probe.Probe](nil)
		w.start(down, once)
		down.await(t, 1)
		w.await("p7", "its new spec", func(p *probe.Probe) bool { return p.Status.AppliedGeneration == 2 })
		down.silent(t, time.Second)
		if down.counts["p7"] != 1 || down.total() != 1 {
			t.Errorf("calls after one spec changed while the process was down: %v, want one for p7", down.counts)
		}
		w.stop()

		next := newCounter[*probe.Probe](nil)
		w.start(next, options{Revision: "2", MaxInterval: -1})
		next.await(t, many)
		if len(next.counts) != many {
			t.Errorf("a new revision visits %d objects, want all %d", len(next.counts), many)
		}
	})
	t.Run("002-34 an appointment is kept", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, once, func(r *run) loop.Outcome {
			if r.Obj.Name == "p3" {
				return loop.After(3 * time.Second)
			}
			return loop.Done()
		})
		c := newCounter[*probe.Probe](nil)
		w.start(c, once)
		started := time.Now()
		c.await(t, 1)
		if d := time.Since(started); c.counts["p3"] != 1 || d > 10*time.Second {
			t.Errorf("%s after the restart the calls are %v, want one for p3, which asked for a pass within 3 s", d, c.counts)
		}
		c.silent(t, time.Second)
	})
	t.Run("every object is visited within the interval", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		often := options{Revision: "1", MaxInterval: 4 * time.Second}
		converge(t, w, options{Revision: "1", MaxInterval: time.Hour}, nil)
		c := newCounter[*probe.Probe](nil)
		w.start(c, often)
		c.await(t, many)
	})
	t.Run("without a revision all are", func(t *testing.T) {
		t.Parallel()
		w := newNamespaceTest(t)
		converge(t, w, options{}, nil)
		c := newCounter[*probe.Probe](nil)
		w.start(c, options{})
		c.await(t, many)
		if last := w.get("p0").Status.LastPass; last != nil {
			t.Errorf("the status has lastPass %+v, which is for controllers with a revision", last)
		}
	})
}

// TestRestartVisits: what a process that starts may not pass over.
func TestRestartVisits(t *testing.T) {
	t.Parallel()
	o := options{Revision: "1", MaxInterval: -1, Retry: linear(-1), WakeOn: []string{"example.org/wake"}}
	for name, change := range map[string]func(*controllerTest){
		"a failure": func(w *controllerTest) { w.resize(13) },
		"an annotation that causes passes": func(w *controllerTest) {
			w.stop()
			w.patch("a", `{"metadata":{"annotations":{"example.org/wake":"now"}}}`)
		},
		"a status of somebody else": func(w *controllerTest) {
			w.stop()
			last := w.get("a").Status.LastPass
			// Even the right hash does not count if another client wrote it.
			patchAs(w.t, w, probeNamed("a"), true, `{"status":{"lastPass":null}}`)
			patchAs(w.t, w, probeNamed("a"), true, fmt.Sprintf(`{"status":{"lastPass":{"inputs":%q}}}`, last.Inputs))
		},
		"a status that is set back": func(w *controllerTest) {
			w.stop()
			patchAs(w.t, w, probeNamed("a"), true, `{"status":{"appliedGeneration":null,"observedGeneration":null}}`)
		},
		"a deletion": func(w *controllerTest) {
			w.stop()
			w.delete()
		},
		"a lost finalizer": func(w *controllerTest) {
			w.stop()
			w.patch("a", `{"metadata":{"finalizers":null}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do := func(r *run) loop.Outcome {
				if r.Obj.Spec.Size == 13 {
					return loop.Fail(errBroken)
				}
				return loop.Done()
			}
			w := newNamespaceTest(t)
			w.start(cleaner{author: newAuthor(nil)}, options{Revision: "1"})
			w.create("a")
			w.await("a", "to be Ready", ready)
			w.stop()
			w.start(tidy{newCounter(do)}, o)
			change(w)
			if name == "a failure" {
				w.await("a", "to fail", func(p *probe.Probe) bool { return p.Status.State == "Failed" })
			}
			w.stop()
			c := tidy{newCounter(do)}
			w.start(c, o)
			c.await(t, 1)
		})
	}
}

// tidy is a counter with something to clean up.
type tidy struct{ *counter[*probe.Probe] }

func (c tidy) Cleanup(_ context.Context, r *run) loop.CleanupOutcome {
	c.calls <- r.Obj.Name
	return loop.CleanedUp()
}

// older is a Probe whose definition comes from an earlier version of trimtab.
type older struct{ probe.Probe }

func (o *older) DeepCopyObject() runtime.Object { return &older{*o.DeepCopy()} }

type olderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []older `json:"items"`
}

func (l *olderList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, older{*l.Items[i].DeepCopy()})
	}
	return &out
}

// TestRestartWithOldDefinition: a definition without the field costs passes, and nothing else.
func TestRestartWithOldDefinition(t *testing.T) {
	t.Parallel()
	data, err := fs.ReadFile(probe.CRDs, "crds/probe.trimtab.dev_probes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	crd.Name = "olders.probe.trimtab.dev"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Older", ListKind: "OlderList", Plural: "olders", Singular: "older"}
	delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "lastPass")
	if data, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	w := newNamespaceTest(t)
	testenv.InstallFS(t, w.cfg, fstest.MapFS{"crds/older.yaml": {Data: data}})
	add := func(s *runtime.Scheme) error {
		s.AddKnownTypeWithName(probe.GroupVersion.WithKind("Older"), &older{})
		s.AddKnownTypeWithName(probe.GroupVersion.WithKind("OlderList"), &olderList{})
		return nil
	}
	w.admin = testenv.Client(t, w.cfg, probe.AddToScheme, add)
	var log logLines
	w.log = funcr.New(func(_, args string) { log.add(args) }, funcr.Options{})
	w.manage(func(mgr ctrl.Manager) error {
		if err := add(mgr.GetScheme()); err != nil {
			return err
		}
		return loop.New(newCounter[*older](nil), loop.Options[*older]{Revision: "1"}).SetupWithManager(mgr)
	})
	for _, name := range []string{"a", "b"} {
		o := &older{}
		o.Name = name
		createAs(t, w, o)
		testenv.Wait(t, w.admin, o, "to be Ready", func(o *older) bool { return ready(&o.Probe) })
	}
	if n := log.count("the CRD lacks status.lastPass"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}
