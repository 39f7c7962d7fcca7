package component_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/product"
	"github.com/trimtab-dev/trimtab/testenv"
)

// hooked records the calls of hooks.
type hooked struct {
	s *shop

	mu      sync.Mutex
	calls   []string
	fail    map[string]bool
	clients map[client.Client]bool
	targets map[string]bool // whether there was a client for the dependents
}

// newHooked is a shop with two hooks at every point.
func newHooked(t *testing.T) *hooked {
	t.Helper()
	h := &hooked{s: newShop(t), fail: map[string]bool{}, clients: map[client.Client]bool{}, targets: map[string]bool{}}
	h.s.hooks = func(r *reconciler) {
		for _, n := range []string{"1", "2"} {
			r.WithPostReadHook(h.at("post-read", n)).WithPreReconcileHook(h.at("pre-reconcile", n)).WithPostReconcileHook(h.at("post-reconcile", n)).
				WithPreDeleteHook(h.at("pre-delete", n)).WithPostDeleteHook(h.at("post-delete", n))
		}
	}
	h.s.start()
	return h
}

// at is a hook.
func (h *hooked) at(point, n string) component.HookFunc[*product.Product] {
	return func(ctx context.Context, c client.Client, p *product.Product) error {
		_, err := component.ClientFromContext(ctx)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, point+n)
		h.clients[c], h.targets[point] = true, err == nil
		if point+n == "post-read1" {
			p.Spec.Name = "renamed"
		}
		if h.fail[point+n] {
			return errors.New(point + n + " fails")
		}
		return nil
	}
}

// failAt has a hook fail, or work again.
func (h *hooked) failAt(hook string, is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail[hook] = is
}

// take returns the calls since the last time.
func (h *hooked) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.calls = nil }()
	return h.calls
}

// says waits until the component reports a failure.
func (h *hooked) says(text string) *product.Product {
	h.s.t.Helper()
	return h.s.await(text, func(p *product.Product) bool {
		return p.Status.State == "Error" && ready(p).Status == "False" && strings.Contains(p.Status.Message, text)
	})
}

// pass has a pass made and waits for its end.
func (h *hooked) pass(token string) {
	h.s.t.Helper()
	h.s.patch(`{"metadata":{"annotations":{"trimtab.dev/reconcile":"` + token + `"}}}`)
	h.s.await(token, func(p *product.Product) bool { return p.Status.HandledReconcile == token })
}

// order are the calls of any number of passes without a failure: the hooks of a point are called in order, and
// the post-read hooks in every pass.
var order = regexp.MustCompile(`^(post-read1 post-read2 ((pre-reconcile1 pre-reconcile2 (post-reconcile1 post-reconcile2 )?)|(pre-delete1 pre-delete2 (post-delete1 post-delete2 )?))?)+$`) //nolint:gochecknoglobals // a constant

// TestHooks: hooks are called at their points, in order, and see the component as it is known.
func TestHooks(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	s := h.s
	s.create(product.Spec{}, configMap("one", "1"))
	p := s.is("Ready", "Ready")
	t.Run("004-37 what a hook changes is seen, and not written", func(t *testing.T) {
		if got := s.generator.last(); got.name != "renamed" || p.Spec.Name != "" {
			t.Errorf("generated for %q, and the spec says %q", got.name, p.Spec.Name)
		}
	})
	h.brokenHooks(t)
	s.is("Ready", "Ready")
	h.pass("without a failure") // the calls of the last pass may be incomplete
	h.take()
	h.pass("now")
	s.delete()
	testenv.Gone(t, s.admin, s.named("a"), "deleted")
	all := h.take()
	t.Run("004-38 post-read hooks are called first in every pass, and have no client for the dependents", func(t *testing.T) {
		text := strings.Join(all, " ") + " "
		if !order.MatchString(text) || !strings.Contains(text, "pre-reconcile1") || !strings.Contains(text, "pre-delete1") {
			t.Errorf("called %v", all)
		}
		for point, has := range h.targets {
			if want := point != "post-read"; has != want {
				t.Errorf("%s: a client for the dependents: %t", point, has)
			}
		}
	})
	t.Run("004-41 delete hooks", func(t *testing.T) {
		if slices.Index(all, "pre-delete1") > slices.Index(all, "post-delete1") || slices.Contains(all[slices.Index(all, "pre-delete1"):], "pre-reconcile1") {
			t.Errorf("called %v", all)
		}
	})
	t.Run("004-43 the client is the manager's", func(t *testing.T) {
		if len(h.clients) != 1 || !h.clients[s.mgr.GetClient()] {
			t.Errorf("%d clients, the manager's among them: %t", len(h.clients), h.clients[s.mgr.GetClient()])
		}
	})
}

// brokenHooks has hooks fail while the component exists.
func (h *hooked) brokenHooks(t *testing.T) {
	t.Helper()
	t.Run("004-42 the first error stops the others", func(t *testing.T) {
		for _, point := range []string{"post-read", "pre-reconcile", "post-reconcile"} {
			for n, later := range map[string]string{"1": point + "2", "2": ""} {
				h.failAt(point+n, true)
				h.s.patch(`{"metadata":{"annotations":{"trimtab.dev/reconcile":"` + point + n + `"}}}`)
				h.says(point + " hook: " + point + n + " fails")
				h.take()
				h.pass("again " + point + n)
				calls := h.take()
				if !slices.Contains(calls, point+n) || later != "" && slices.Contains(calls, later) {
					t.Errorf("%s failed, and these were called: %v", point+n, calls)
				}
				h.failAt(point+n, false)
				h.s.is("Ready", "Ready")
			}
		}
	})
}

// TestHooksStop: errors of hooks stop what would follow.
func TestHooksStop(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	s := h.s
	h.failAt("pre-reconcile1", true)
	s.create(product.Spec{}, configMap("one", "1"))
	p := h.says("pre-reconcile hook: pre-reconcile1 fails")
	t.Run("004-39 an error of pre-reconcile stops the pass", func(t *testing.T) {
		if got := h.take(); len(p.Status.Inventory) != 0 || slices.Contains(got, "post-reconcile1") || slices.Contains(got, "pre-delete1") {
			t.Errorf("inventory %v, called %v", p.Status.Inventory, got)
		}
	})
	h.failAt("post-reconcile1", true)
	h.failAt("pre-reconcile1", false)
	t.Run("004-40 an error of post-reconcile is an error of the component", func(*testing.T) { h.says("post-reconcile1 fails") })
	h.failAt("post-reconcile1", false)
	s.is("Ready", "Ready")
	h.failAt("pre-delete1", true)
	h.take()
	s.delete()
	h.says("pre-delete1 fails")
	t.Run("004-42 also in a deletion", func(t *testing.T) {
		if got := h.take(); slices.Contains(got, "pre-delete2") || slices.Contains(got, "post-delete1") {
			t.Errorf("called %v", got)
		}
		h.failAt("post-delete2", true)
		h.failAt("pre-delete1", false)
		s.await("post-delete fails", func(p *product.Product) bool {
			return strings.Contains(p.Status.Message, "post-delete2 fails") && len(p.Status.Inventory) == 0
		})
		h.failAt("post-delete1", true)
		h.says("post-delete1 fails")
		h.take()
		h.pass("during the deletion")
		if got := h.take(); !slices.Contains(got, "post-delete1") || slices.Contains(got, "post-delete2") {
			t.Errorf("called %v", got)
		}
	})
	h.failAt("post-delete1", false)
	h.failAt("post-delete2", false)
	testenv.Gone(t, s.admin, s.named("a"), "deleted")
}
