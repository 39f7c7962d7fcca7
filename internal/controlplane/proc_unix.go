//go:build unix

package controlplane

import (
	"os/exec"
	"syscall"
)

// OwnGroup takes cmd out of the terminal's process group: Ctrl-C reaches this process
// alone, which then ends cmd in order.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// ownSession lets cmd outlive the terminal.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// interruptGroup does to cmd and its children what Ctrl-C does.
func interruptGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// terminateGroup asks cmd, and its children, to end for good.
func terminateGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup ends cmd and its children at once.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
