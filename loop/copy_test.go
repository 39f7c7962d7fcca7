package loop_test

import (
	"context"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/probe"
	"github.com/trimtab-dev/trimtab/loop"
)

// scribbler changes what it gets in every method, and looks what the cache has then.
type scribbler struct {
	*author
	spoilt atomic.Pointer[string]
}

// Selects selects all.
func (s *scribbler) Selects(ctx context.Context, r *run) bool {
	s.scribble(ctx, r, "Selects")
	return true
}

func (s *scribbler) Reconcile(ctx context.Context, r *run) loop.Outcome {
	s.scribble(ctx, r, "Reconcile")
	return s.author.Reconcile(ctx, r)
}

func (s *scribbler) scribble(ctx context.Context, r *run, method string) {
	for key := range r.Obj.Annotations {
		r.Obj.Annotations[key] = method
	}
	cached := &probe.Probe{}
	if err := r.Client().Get(ctx, client.ObjectKeyFromObject(r.Obj), cached); err == nil && cached.Annotations["note"] == method {
		s.spoilt.CompareAndSwap(nil, &method)
	}
	for key := range r.Obj.Annotations { // nothing is written
		r.Obj.Annotations[key] = "as it was"
	}
}

// TestPrivateCopy: an author changes the object in memory as it likes, and the cache, which is shared,
// stays as it is.
func TestPrivateCopy(t *testing.T) {
	t.Parallel()
	s := &scribbler{author: newAuthor(nil)}
	w := newControllerTest(t, s, options{})
	w.create("a", func(p *probe.Probe) { p.Annotations = map[string]string{"note": "as it was"} })
	w.await("a", "to be Ready", ready)
	w.resize(2)
	w.await("a", "the second pass", func(p *probe.Probe) bool { return p.Status.ObservedGeneration == 2 })
	if m := s.spoilt.Load(); m != nil {
		t.Errorf("what %s changed in memory is in the cache", *m)
	}
}
