//go:build !linux

package child

import (
	"os/exec"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// Start starts cmd in a process group of its own, so that Ctrl-C reaches only this process, which ends cmd. Only Linux can
// have it end when this process is killed.
func Start(cmd *exec.Cmd, _ <-chan struct{}) error {
	controlplane.OwnGroup(cmd)
	return cmd.Start()
}
