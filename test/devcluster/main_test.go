// Package devcluster_test proves that the devcluster binary is a Kubernetes
// cluster as far as an operator and a kubectl user can tell, and that it comes
// and goes without a trace. It uses the binary from outside and links none of
// it, so that it builds in seconds, with the race detector too.
package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// The programs under test and the cluster that most tests share. TestMain sets
// them before the first test.
var (
	devcluster string
	kubectl    string
	shared     *cluster
)

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	if os.Getenv(parentRole) != "" {
		return 0, actAsParent(ctx)
	}
	if devcluster, err = controlplane.Binary(ctx, controlplane.Print(os.Stderr)); err != nil {
		return 0, err
	}
	if kubectl, err = buildKubectl(ctx); err != nil {
		return 0, err
	}
	if shared, err = launch(ctx, nil); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, shared.terminate()
}

// buildKubectl builds the kubectl of the same release into the user's cache,
// where the next run finds it and the go command has nothing to link.
func buildKubectl(ctx context.Context) (string, error) {
	dir, err := controlplane.CacheFolder("kubectl")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", "../../devcluster", "-o", dir+"/", "./cmd/kubectl")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("build kubectl: %w", err), errors.New(string(out)))
	}
	return dir + "/kubectl", nil
}
