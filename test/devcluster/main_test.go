// Package devcluster_test proves that the devcluster binary is a Kubernetes
// cluster as far as an operator and a kubectl user can tell, and that it comes
// and goes without a trace. It uses the binary from outside and links none of
// it, so that it builds in seconds, with the race detector too.
package devcluster_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"testing"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
	"github.com/trimtab-dev/trimtab/internal/gobuild"
)

func TestMain(m *testing.M) {
	if os.Getenv(parentRole) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		err := actAsParent(ctx)
		stop()
		exit(0, err)
	}
	code := m.Run()
	if common.cluster != nil {
		exit(code, common.cluster.terminate())
	}
	os.Exit(code)
}

func exit(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// common is what tests share. Tests ask for it, not TestMain: go test knows what tests ask for.
var common struct {
	sync.Mutex
	cluster *cluster
	kubectl string
	failed  error
}

// shared returns the cluster that most tests share.
func shared(t *testing.T) *cluster {
	t.Helper()
	common.Lock()
	defer common.Unlock()
	if common.failed == nil && common.cluster == nil {
		common.cluster, common.failed = launch(t.Context(), nil)
	}
	if common.failed != nil {
		t.Fatalf("start the cluster that tests share: %v", common.failed)
	}
	return common.cluster
}

// kubectl returns the path of the kubectl of the same release. It is built into the user's cache, where the next run finds it and the go
// command has nothing to link.
func kubectl(t *testing.T) string {
	t.Helper()
	common.Lock()
	defer common.Unlock()
	if common.kubectl != "" {
		return common.kubectl
	}
	dir, err := controlplane.CacheFolder("kubectl")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := gobuild.Output(t, "github.com/trimtab-dev/trimtab/devcluster/cmd/kubectl", "-o", dir+"/"); err != nil {
		t.Fatalf("build kubectl: %v\n%s", err, out)
	}
	common.kubectl = filepath.Join(dir, "kubectl")
	return common.kubectl
}
