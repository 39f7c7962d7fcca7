package patch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/patch"
)

// refusing is a client whose writes of a status fail.
type refusing struct{ client.Client }

func (c refusing) Status() client.SubResourceWriter { return refusingStatus{c.Client.Status()} }

type refusingStatus struct{ client.SubResourceWriter }

var errRefused = errors.New("refused")

func (refusingStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errRefused
}

// TestOthers: what others write between the requests of one snapshot stays.
func TestOthers(t *testing.T) {
	t.Parallel()
	t.Run("003-17 another Write after a failed status sends the status alone, and reverts nothing of others", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := patch.From(w.obj)
		w.theirs(`{"metadata":{"labels":{"theirs":"1"}},"spec":{"size":7}}`)
		w.obj.Annotations, w.obj.Status.Note = map[string]string{"ours": "1"}, "ours"
		if err := s.Write(t.Context(), refusing{w.c}, w.obj); !errors.Is(err, errRefused) {
			t.Fatalf("error %v, want that of the status", err)
		}
		if w.obj.Status.Note != "ours" || w.obj.Spec.Size != 7 {
			t.Errorf("in memory are the note %q and the size %d, want ours and 7", w.obj.Status.Note, w.obj.Spec.Size)
		}
		w.requests.Reset()
		if err := s.Write(t.Context(), w.c, w.obj); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"patch status": `{"status":{"note":"ours"}}`}, w.bodies()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		now := w.server()
		if now.Spec.Size != 7 || now.Labels["theirs"] != "1" || now.Annotations["ours"] != "1" || now.Status.Note != "ours" {
			t.Errorf("the server has labels %v, annotations %v, spec %+v, note %q", now.Labels, now.Annotations, now.Spec, now.Status.Note)
		}
	})
	t.Run("a write that changes a list is refused if anybody else has written", func(t *testing.T) {
		t.Parallel()
		condition := metav1.Condition{Type: "Ours", Status: "True", Reason: "Up", LastTransitionTime: metav1.Now()}
		for name, change := range map[string]func(*probe.Probe){
			"a finalizer on":   func(p *probe.Probe) { p.Finalizers = append(p.Finalizers, "example.org/b") },
			"the only one off": func(p *probe.Probe) { p.Finalizers = nil },
			"an owner reference": func(p *probe.Probe) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "x", UID: "1"}}
			},
			"conditions": func(p *probe.Probe) { p.Status.Conditions = []metav1.Condition{condition} },
			"labels and conditions": func(p *probe.Probe) {
				p.Labels, p.Status.Conditions = map[string]string{"ours": "1"}, []metav1.Condition{condition}
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.theirs(`{"metadata":{"finalizers":["example.org/a"]}}`)
				w.obj = w.server()
				s := patch.From(w.obj)
				change(w.obj)
				w.theirs(`{"metadata":{"finalizers":["example.org/a","example.org/theirs"]}}`)
				if err := s.Write(t.Context(), w.c, w.obj); !apierrors.IsConflict(err) {
					t.Errorf("error %v, want a conflict", err)
				}
				if got := strings.Join(w.server().Finalizers, " "); got != "example.org/a example.org/theirs" {
					t.Errorf("finalizers %s", got)
				}
				w.theirs(`{"metadata":{"finalizers":null}}`)
			})
		}
	})
	t.Run("an object that is gone is an error for whoever relies on a finalizer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := patch.From(w.obj)
		w.obj.Finalizers = []string{"example.org/x"}
		if err := w.admin.Delete(t.Context(), w.obj.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), w.c, w.obj.DeepCopy()); !apierrors.IsNotFound(err) {
			t.Errorf("gone: error %v, want NotFound", err)
		}
		if err := w.admin.Create(t.Context(), &probe.Probe{ObjectMeta: metav1.ObjectMeta{Namespace: w.obj.Namespace, Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), w.c, w.obj.DeepCopy()); !apierrors.IsConflict(err) {
			t.Errorf("created again: error %v, want a conflict", err)
		}
	})
}
