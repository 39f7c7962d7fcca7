package target

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/component/internal/projection"
)

// withRegistry runs a test on a registry that runs, in simulated time. No request is sent.
func withRegistry(t *testing.T, test func(t *testing.T, r *Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Options{
			Config: &rest.Config{Host: "https://here"}, HTTPClient: &http.Client{}, Mapper: meta.MultiRESTMapper{},
			Names: projection.Names{Manager: "op", OwnerLabel: "op.test/owner-id"},
			Wake:  func(...types.NamespacedName) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		test(t, r)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (r *Registry) join(t *testing.T, uid string, id Identity) *Target {
	t.Helper()
	target, err := r.Join(t.Context(), types.UID(uid), types.NamespacedName{Name: uid}, id)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// count is how many targets run beside the local one.
func (r *Registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.targets)
}

func TestRegistry(t *testing.T) {
	there := Identity{Kubeconfig: encode(t, valid())}
	t.Run("shared", func(t *testing.T) {
		withRegistry(t, func(t *testing.T, r *Registry) {
			one, two := r.join(t, "one", there), r.join(t, "two", there)
			if one != two || r.count() != 1 {
				t.Errorf("%d targets for one identity", r.count())
			}
			if other := r.join(t, "three", Identity{Kubeconfig: there.Kubeconfig, User: "user"}); other == one {
				t.Error("another user has the same target")
			}
			if l := r.join(t, "four", Identity{}); !l.Local() || l != r.join(t, "five", Identity{User: ""}) {
				t.Error("without an identity it is not the local target")
			}
		})
	})
	t.Run("dropped when idle", func(t *testing.T) {
		withRegistry(t, func(t *testing.T, r *Registry) {
			before := r.join(t, "one", there)
			r.Leave("one")
			<-time.After(4 * time.Minute)
			if r.join(t, "two", there) != before {
				t.Error("it was dropped too early")
			}
			<-time.After(time.Hour)
			if r.count() != 1 {
				t.Error("it was dropped while it was used")
			}
			r.Leave("two")
			<-time.After(7 * time.Minute)
			if r.count() != 0 {
				t.Error("it was kept")
			}
		})
	})
	t.Run("dropped when the kubeconfig is rotated", func(t *testing.T) {
		withRegistry(t, func(t *testing.T, r *Registry) {
			r.join(t, "one", there)
			r.join(t, "two", there)
			after := Identity{Kubeconfig: append(there.Kubeconfig, "\n# new"...)}
			r.join(t, "one", after)
			if r.count() != 2 {
				t.Error("it was dropped while another component used it")
			}
			r.join(t, "two", after)
			if r.count() != 1 || r.Last("two") != r.join(t, "one", after) {
				t.Errorf("%d targets", r.count())
			}
		})
	})
}
