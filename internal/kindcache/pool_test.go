package kindcache_test

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/internal/kindcache"
	"github.com/trimtab-dev/trimtab/internal/poll"
	"github.com/trimtab-dev/trimtab/testenv"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// transport answers requests instead of the API server if it likes to.
type transport func(next http.RoundTripper, req *http.Request) (*http.Response, error)

// pool returns a pool that watches, with a transport in front of a real API server.
func pool(t *testing.T, through transport, namespaces ...string) (*kindcache.Pool, string) {
	t.Helper()
	server := testenv.Start(t)
	cfg := rest.CopyConfig(server)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return between{next, through} })
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, c)
	if err != nil {
		t.Fatal(err)
	}
	namespace := testenv.Namespace(t, server)
	p := kindcache.New(kindcache.Options{
		Config: cfg, HTTPClient: c, Scheme: clientgoscheme.Scheme, Mapper: mapper, Namespaces: append(namespaces, namespace),
	})
	p.Start(t.Context())
	return p, namespace
}

type between struct {
	next    http.RoundTripper
	through transport
}

// RoundTrip implements http.RoundTripper.
func (b between) RoundTrip(req *http.Request) (*http.Response, error) { return b.through(b.next, req) }

// TestRecovered: what went wrong before a kind could be watched is forgotten when it is.
func TestRecovered(t *testing.T) {
	t.Parallel()
	var failed atomic.Int32
	p, namespace := pool(t, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if !strings.Contains(req.URL.Path, "configmaps") && failed.Load() < 3 {
			failed.Add(1)
			return nil, errors.New("the API server is away")
		}
		return next.RoundTrip(req)
	})
	held, err := p.Hold(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	if !poll.Until(func() bool { return held.Status().Synced }) {
		t.Fatalf("the kind is not watched: %+v", held.Status())
	}
	if s := held.Status(); s.Err != nil || s.Failures != 0 || failed.Load() < 3 {
		t.Errorf("after %d failures, the kind is watched with error %v and %d failures", failed.Load(), s.Err, s.Failures)
	}
	reader, err := held.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "none"}, &corev1.ConfigMap{}); err == nil {
		t.Error("no error for an object that does not exist")
	}
}

// TestSameError: what is refused in several namespaces is the same error each time, because users read it in statuses, each of
// whose changes is a write.
func TestSameError(t *testing.T) {
	t.Parallel()
	p, _ := pool(t, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if strings.Contains(req.URL.Path, "/namespaces/") {
			req = req.Clone(req.Context())
			req.Header.Set("Impersonate-User", "nobody")
		}
		return next.RoundTrip(req)
	}, "a", "b", "c", "d")
	held, err := p.Hold(&corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	seen := map[string]bool{}
	for s := range held.Changes(t.Context()) {
		if err := s.Forbidden(); err != nil && strings.Count(err.Error(), "forbidden") == 5 {
			seen[err.Error()] = true
		}
		if s.Failures > 15 {
			break
		}
	}
	if len(seen) != 1 {
		t.Errorf("several errors for one reason, or none: %q", slices.Collect(maps.Keys(seen)))
	}
}
