package patch_test

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/patch"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// world is a Probe on an API server: as a reconciler has it, and as the server does.
type world struct {
	t        *testing.T
	c        client.Client // of the reconciler
	admin    client.Client
	requests *testenv.Log
	obj      *probe.Probe
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cfg := testenv.Start(t)
	testenv.InstallFS(t, cfg, probe.CRDs)
	counted, requests := testenv.Requests(cfg)
	w := &world{
		t: t, c: testenv.Client(t, counted, probe.AddToScheme), admin: testenv.Client(t, cfg, probe.AddToScheme), requests: requests,
		obj: &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace(t, cfg), Name: "a"}, Spec: probe.ProbeSpec{Size: 1}},
	}
	if err := w.admin.Create(t.Context(), w.obj); err != nil {
		t.Fatal(err)
	}
	return w
}

// server returns the object as the API server has it.
func (w *world) server() *probe.Probe {
	w.t.Helper()
	now := &probe.Probe{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(w.obj), now); err != nil {
		w.t.Fatal(err)
	}
	return now
}

// theirs merges a body into the object, as another client would.
func (w *world) theirs(body string) {
	w.t.Helper()
	target := w.obj.DeepCopy()
	if err := w.admin.Patch(w.t.Context(), target, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// bodies returns what was sent, by verb and subresource.
func (w *world) bodies() map[string]string {
	sent := map[string]string{}
	for _, r := range w.requests.Writes("probes", w.obj.Namespace, "a") {
		sent[r.Verb+" "+r.Subresource] = string(r.Body)
	}
	return sent
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	t.Run("003-16 a patch of the status has the fields that changed, and no other", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.obj.Status.Note, w.obj.Status.State = "one", "Waiting"
		if err := patch.From(&probe.Probe{ObjectMeta: w.obj.ObjectMeta}).Write(t.Context(), w.c, w.obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		w.obj = w.server()
		w.requests.Reset()
		s := patch.From(w.obj)
		w.obj.Status.Note = "two"
		if err := s.Write(t.Context(), w.c, w.obj); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"patch status": `{"status":{"note":"two"}}`}, w.bodies()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if now := w.server(); now.Status.Note != "two" || now.Status.State != "Waiting" {
			t.Errorf("status %+v", now.Status)
		}
		w.requests.Reset()
		if err := s.Write(t.Context(), w.c, w.obj); err != nil || len(w.requests.All()) > 0 {
			t.Errorf("with nothing to write: %v, %s", err, w.requests)
		}
	})
	t.Run("003-17 Changes names the top-level fields, and changes of both object and status persist", func(t *testing.T) {
		t.Parallel()
		tests := map[string]struct {
			why    string
			change func(*probe.Probe)
			want   []string
		}{
			"nothing":  {why: "a converged object costs no request", change: func(*probe.Probe) {}, want: nil},
			"metadata": {why: "labels", change: func(p *probe.Probe) { p.Labels = map[string]string{"a": "b"} }, want: []string{"metadata"}},
			"spec":     {why: "a child may be patched", change: func(p *probe.Probe) { p.Spec.Size = 2 }, want: []string{"spec"}},
			"status":   {why: "the usual case", change: func(p *probe.Probe) { p.Status.Note = "x" }, want: []string{"status"}},
			"served": {why: "what only the server sets is no change", change: func(p *probe.Probe) {
				p.ResourceVersion, p.Kind, p.ManagedFields = "1", "Probe", nil
			}, want: nil},
			"both": {why: "two requests, and none loses what the other wrote", change: func(p *probe.Probe) {
				p.Finalizers, p.Status.Note = []string{"example.org/x"}, "x"
			}, want: []string{"metadata", "status"}},
		}
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := patch.From(w.obj)
				tc.change(w.obj)
				changes, err := s.Changes(w.obj)
				if diff := cmp.Diff(tc.want, changes); diff != "" || err != nil {
					t.Errorf("%s: %v, changes (-want +got):\n%s", tc.why, err, diff)
				}
				want := w.obj.DeepCopy()
				if err := s.Write(t.Context(), w.c, w.obj); err != nil {
					t.Fatal(err)
				}
				for who, got := range map[string]*probe.Probe{"server": w.server(), "memory": w.obj} {
					if !cmp.Equal(want.Spec, got.Spec) || !cmp.Equal(want.Status, got.Status) || !cmp.Equal(want.Labels, got.Labels) || !cmp.Equal(want.Finalizers, got.Finalizers) {
						t.Errorf("%s: the %s has %+v, want %+v", tc.why, who, got, want)
					}
				}
				if after, err := s.Changes(w.obj); err != nil || len(after) > 0 {
					t.Errorf("%s: still to write: %q, %v", tc.why, after, err)
				}
				if w.server().Finalizers != nil {
					w.theirs(`{"metadata":{"finalizers":null}}`)
				}
			})
		}
	})
	t.Run("a lock refuses what is based on an old copy, also after a write of one's own", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := patch.From(w.obj)
		s.Lock = true
		w.obj.Labels, w.obj.Status.Note = map[string]string{"ours": "1"}, "ours"
		if err := s.Write(t.Context(), w.c, w.obj); err != nil {
			t.Fatalf("the second request of a locked write: %v", err)
		}
		w.theirs(`{"metadata":{"labels":{"theirs":"1"}}}`)
		w.obj.Status.Note = "old"
		if err := s.Write(t.Context(), w.c, w.obj); !apierrors.IsConflict(err) {
			t.Errorf("error %v, want a conflict", err)
		}
		if s.Lock = false; s.Write(t.Context(), w.c, w.obj) != nil {
			t.Error("without the lock it is refused, too")
		}
		want := map[string]string{"ours": "1", "theirs": "1"}
		if now := w.server(); !cmp.Equal(now.Labels, want) || now.Status.Note != "old" {
			t.Errorf("labels %v, note %q", now.Labels, now.Status.Note)
		}
	})
	t.Run("an object that is gone, or another one of its name, is no failure", func(t *testing.T) {
		t.Parallel()
		for name, change := range map[string]func(*probe.Probe){
			"object": func(p *probe.Probe) { p.Labels = map[string]string{"a": "b"} },
			"status": func(p *probe.Probe) { p.Status.Note = "x" },
			"both":   func(p *probe.Probe) { p.Labels, p.Status.Note = map[string]string{"a": "b"}, "x" },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := patch.From(w.obj)
				s.Lock = name == "status" // which only a lock keeps from another object
				change(w.obj)
				if err := w.admin.Delete(t.Context(), w.obj.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				if err := s.Write(t.Context(), w.c, w.obj.DeepCopy()); err != nil {
					t.Errorf("gone: %v", err)
				}
				again := &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.obj.Namespace, Name: "a"}}
				if err := w.admin.Create(t.Context(), again); err != nil {
					t.Fatal(err)
				}
				if err := s.Write(t.Context(), w.c, w.obj.DeepCopy()); err != nil {
					t.Errorf("created again: %v", err)
				}
				if now := w.server(); now.Labels != nil || now.Status.Note != "" {
					t.Errorf("the new object got labels %v and note %q", now.Labels, now.Status.Note)
				}
			})
		}
	})
	t.Run("a write outlives its context", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := patch.From(w.obj)
		w.obj.Status.Note = "late"
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Write(ctx, w.c, w.obj); err != nil || w.server().Status.Note != "late" {
			t.Errorf("%v, note %q", err, w.server().Status.Note)
		}
	})
}
