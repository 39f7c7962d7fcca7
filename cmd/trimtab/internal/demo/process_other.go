//go:build !linux

package demo

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func startPinned(cmd *exec.Cmd) error { return cmd.Start() }
