package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

func start(cmd *exec.Cmd, ended <-chan struct{}) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// For the kernel, the parent is the thread that starts the process, and the Go runtime may end threads at any time.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			<-ended // keeps the thread, which ends with the goroutine
		}
	}()
	return <-started
}
