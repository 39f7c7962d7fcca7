package child

import (
	"errors"
	"os/exec"
	"time"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// lingering is how long what others write into the output of a process is read after its end.
const lingering = time.Second

// Start starts cmd in a process group of its own, so that Ctrl-C reaches only this process. On Linux, the kernel kills it when this
// process dies, even by SIGKILL; elsewhere, this process has to end it. The caller calls [Wait], and closes ended afterwards.
func Start(cmd *exec.Cmd, ended <-chan struct{}) error {
	cmd.WaitDelay = lingering
	return start(cmd, ended)
}

// Wait waits until cmd has ended, and returns how. Processes that it has started and left behind are killed, unless they have left
// its process group: they may keep its output open, and whoever starts cmd again would have them twice.
func Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = controlplane.KillGroup(cmd) // an error means that nobody is left
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // cmd has ended well, and somebody else kept its output open
	}
	return err
}
