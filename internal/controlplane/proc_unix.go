//go:build unix

package controlplane

import (
	"os/exec"
	"syscall"
)

// OwnGroup moves cmd out of the terminal's process group, so that Ctrl-C reaches only this process,
// which can then stop cmd gracefully.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ownSession lets cmd outlive the terminal.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// interruptGroup sends SIGINT to cmd and its children, as Ctrl-C would.
func interruptGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// terminateGroup sends SIGTERM to cmd and its children.
func terminateGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// KillGroup sends SIGKILL to cmd and its children.
func KillGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
