package cli

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain sets a logger as the command does, and before any client. Without one, controller-runtime sets it 30 s later, which races
// with clients that are created at that time.
func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
