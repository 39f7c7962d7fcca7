//go:build !linux

package child

import (
	"os/exec"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

func start(cmd *exec.Cmd, _ <-chan struct{}) error {
	controlplane.OwnGroup(cmd)
	return cmd.Start()
}
