package component_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/internal/bundle"
)

// gate holds the watch events of a resource back while it is closed.
type gate struct {
	resource string
	mu       sync.RWMutex
}

func (g *gate) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && req.URL.Query().Get("watch") != "" && strings.HasSuffix(req.URL.Path, "/"+g.resource) {
			resp.Body = &gatedBody{resp.Body, g}
		}
		return resp, err
	})
}

type gatedBody struct {
	io.ReadCloser
	gate *gate
}

func (b *gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.RLock()
	defer b.gate.mu.RUnlock()
	return n, err
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	t.Run("B-5 a stale watch", func(t *testing.T) {
		t.Parallel()
		g := &gate{resource: "tasks"}
		b := prepareBench(t).withTasks()
		b.cfg = rest.CopyConfig(b.cfg)
		b.cfg.Wrap(g.wrap)
		b.start()
		b.create(task("a"))
		b.finish("a", true)
		b.ready()

		b.requests.Reset()
		g.mu.Lock()
		held := true
		open := func() {
			if held {
				held = false
				g.mu.Unlock()
			}
		}
		defer open()
		changed := task("a")
		changed.Object["spec"] = map[string]any{"command": "new"}
		b.change(changed)
		stale := func(o *bundle.Bundle) bool {
			return o.Status.State == component.StateProcessing && strings.HasSuffix(o.Status.Message, "Task "+b.namespace+"/a: it has a status of generation 1, and is at generation 2")
		}
		b.await("the status of the old version does not count", stale)
		for range 3 { // as often as it is reconciled
			b.fence()
			if o := b.await("any status", func(*bundle.Bundle) bool { return true }); !stale(o) {
				t.Errorf("state %s: %s", o.Status.State, o.Status.Message)
			}
		}
		if sent := b.sent(); sent.Dependents != 1 || len(sent.Reads) != 0 {
			t.Errorf("%v, want one write of a dependent", sent)
		}
		b.finish("a", true)
		open()
		b.ready()
	})
}
