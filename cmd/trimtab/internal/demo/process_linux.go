package demo

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel kill the process when this one dies, even by SIGKILL.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// startPinned starts cmd from a thread that lives as long as this process. For the kernel, the
// parent is that thread, and the Go runtime may end other threads at any time.
func startPinned(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {} // keeps the thread
	}()
	return <-started
}
