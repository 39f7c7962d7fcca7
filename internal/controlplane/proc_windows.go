package controlplane

import (
	"os/exec"
	"syscall"
)

const detachedProcess = 0x00000008

// OwnGroup moves cmd out of the console's process group, so that Ctrl-C reaches only this process,
// which can then stop cmd gracefully.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// ownSession lets cmd outlive the console.
func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: detachedProcess}
}

// interruptGroup ends cmd; there is no way to ask.
func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// terminateGroup ends cmd; there is no way to ask.
func terminateGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

// KillGroup ends cmd.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
