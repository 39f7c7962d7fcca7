package demo

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent has the kernel kill the process when this one dies, also of SIGKILL.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// startPinned starts cmd from a thread that lives as long as this process: the kernel's
// notion of the parent is the thread, and Go ends threads as it likes.
func startPinned(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- cmd.Start()
		select {} // keeps the thread
	}()
	return <-started
}
