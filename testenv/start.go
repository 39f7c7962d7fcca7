package testenv

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

const (
	// EnvKubeconfig names the environment variable with the kubeconfig of a cluster to
	// test on. Tests have all its permissions, and they leave CRDs behind.
	EnvKubeconfig = "TRIMTAB_TEST_KUBECONFIG"
	// EnvThrowaway names the environment variable that is set, to anything, if the cluster of [EnvKubeconfig] is
	// removed after the tests. [Namespace] then leaves its namespaces there.
	EnvThrowaway = "TRIMTAB_TEST_THROWAWAY"
	// EnvAssets names the environment variable with the folder of the envtest binaries.
	EnvAssets = "KUBEBUILDER_ASSETS"
)

// server is shared by all tests of a binary, because starting one takes seconds and a test
// milliseconds.
//
//arch:state a test binary has no other place that outlives a test
var server struct {
	once sync.Once
	cfg  *rest.Config
	err  error
	// held keeps the control plane reachable: it ends when the pipe to it is closed, which the
	// garbage collector would do.
	held any
	// host is where it is, if it is removed after the tests.
	host atomic.Pointer[string]
}

// Start returns the client configuration of an administrator for a real API server. The first call in
// a test binary finds or starts the server. The server ends with the binary, however that ends. The
// configuration has no client-side rate limit.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	server.once.Do(func() {
		server.err = errors.New("the test that was starting it was stopped")
		server.cfg, server.err = find(t)
	})
	if server.err != nil {
		t.Fatalf("no API server to test on: %v", server.err)
	}
	return rest.CopyConfig(server.cfg)
}

// throwaway reports whether cfg is for a server that Start has started, or that somebody removes after the tests, so that nothing
// in it stays.
func throwaway(cfg *rest.Config) bool {
	host := server.host.Load()
	return host != nil && cfg.Host == *host
}

func find(t testing.TB) (*rest.Config, error) {
	t.Helper()
	// The server outlives the test that starts it.
	ctx := context.WithoutCancel(t.Context())
	var cfg *rest.Config
	var err error
	switch {
	case os.Getenv(EnvKubeconfig) != "":
		if cfg, err = clientcmd.BuildConfigFromFlags("", os.Getenv(EnvKubeconfig)); err == nil && os.Getenv(EnvThrowaway) != "" {
			server.host.Store(&cfg.Host)
		}
	case os.Getenv(EnvAssets) != "":
		cfg, err = startAssets(os.Getenv(EnvAssets))
	default:
		cfg, err = startOwn(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

// errLate is the error if the time limit of go test is shorter than the first build.
var errLate = errors.New("the control plane is still being built and the test's time is up; " +
	"build it before, with `go run github.com/trimtab-dev/trimtab/cmd/trimtab cluster build`, or allow for more with -timeout")

// errSlow is the error if the control plane has not started when the time limit of go test is near.
var errSlow = errors.New("the test's time is up; allow for more with -timeout")

// startOwn starts trimtab's control plane.
func startOwn(ctx context.Context, t testing.TB) (*rest.Config, error) {
	t.Helper()
	building, cancel := ctx, context.CancelFunc(func() {})
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			building, cancel = context.WithDeadlineCause(ctx, end.Add(-grace), errLate)
		}
	}
	defer cancel()
	binary, err := controlplane.Binary(building, controlplane.Print(os.Stderr))
	if err != nil {
		return nil, err
	}
	alive, end := context.WithCancelCause(ctx) // as long as the process
	started := context.AfterFunc(building, func() { end(errSlow) })
	cluster, err := controlplane.Start(alive, controlplane.Options{Binary: binary})
	started()
	if err != nil {
		return nil, err
	}
	server.held = cluster
	server.host.Store(&cluster.Config.Host)
	return cluster.Config, nil
}

const (
	// patience is how long to wait for a state that should be reached soon. It is long enough for a busy machine; only a failing
	// test waits so long.
	patience = 2 * time.Minute
	// grace is how long before the time limit of go test a test must fail, so that it can say
	// what went wrong.
	grace = 3 * time.Second
)

// within returns a context that ends after two minutes, or shortly before go test would abort the test
// without an explanation.
func within(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	end := time.Now().Add(patience)
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if limit, ok := d.Deadline(); ok && limit.Add(-grace).Before(end) {
			end = limit.Add(-grace)
		}
	}
	return context.WithDeadline(t.Context(), end)
}
