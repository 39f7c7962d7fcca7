package projection

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBackoff: an API server that cannot be reached is asked again after growing delays.
func TestBackoff(t *testing.T) {
	t.Parallel()
	t.Run("B-23 ten minutes without an answer", func(t *testing.T) { synctest.Test(t, backoff) })
}

func backoff(t *testing.T) {
	t.Helper()
	var requests, failures atomic.Int64
	open, err := openerOf(Options{
		Config: &rest.Config{Host: "https://there", QPS: -1},
		HTTPClient: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			requests.Add(1)
			return nil, errors.New("no route to host")
		})},
	}, "op.test/owner-id")
	if err != nil {
		t.Fatal(err)
	}
	src := source{kind: widgets, resource: schema.GroupVersionResource{Group: widgets.Group, Version: "v1", Resource: "widgets"}, transform: Names{}.transformer(widgets.GroupKind())}
	run, err := open(src, nil, func(context.Context, *toolscache.Reflector, error) { failures.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	<-time.After(10 * time.Minute)
	cancel()
	<-ended
	t.Logf("%d requests in ten minutes", requests.Load())
	// A delay of 30 s and more makes 20 attempts, the growing ones before a few more; an attempt is a
	// watch and a list.
	if n := requests.Load(); n < 10 || n > 60 {
		t.Errorf("%d requests in ten minutes, want 10 to 60", n)
	}
	if failures.Load() == 0 {
		t.Error("no failure was reported")
	}
}
