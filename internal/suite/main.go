// Command suite runs the commands of a test suite, each of which writes what go test -json writes. It prints what go test prints
// without -json, and at the end the seconds of each package and the slowest tests. It fails if one of the commands fails.
//
// Commands stand between two "--". Three of them run at a time, so that one can use the processors while tests of the others wait. They
// begin in their order, so the one that takes longest comes first.
//
// A command after the word "shared" tests on one control plane with all others that do, which ends with them.
//
//	go run ./internal/suite go test -json ./loop -- shared go test -json -race ./external -- shared go test -json ./samples/...
package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := suite(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// suite starts the control plane if commands share one, and runs them.
func suite(ctx context.Context, out io.Writer, args []string) error {
	var env []string
	if slices.Contains(args, shared) {
		kubeconfig, lock, err := place()
		if err != nil {
			return err
		}
		defer lock.Close()
		cluster, err := controlplane.Start(ctx, controlplane.Options{
			Progress: controlplane.Print(os.Stderr), Kubeconfig: kubeconfig, Hold: lock,
		})
		if err != nil {
			return err
		}
		defer func() { _ = cluster.Stop() }()
		env = []string{"TRIMTAB_TEST_KUBECONFIG=" + cluster.Kubeconfig, "TRIMTAB_TEST_THROWAWAY=1"} // see package testenv
	}
	return run(ctx, out, env, split(args))
}

// place is the path of the kubeconfig of the control plane that commands share, and a file that is locked as long as a process uses the
// path. It is the same for the same working folder and the same control plane: go test keeps results of tests as long as the
// environment variables that they ask for are the same. While another suite has it, it is empty.
func place() (kubeconfig string, lock *os.File, err error) {
	here, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	all, err := controlplane.CacheFolder("suite")
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(here + "\x00" + os.Getenv(controlplane.EnvBinary)))
	folder := filepath.Join(all, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", nil, err
	}
	lock, err = os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	got, err := controlplane.TryLock(lock)
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	if !got {
		return "", lock, nil
	}
	return filepath.Join(folder, "kubeconfig"), lock, nil
}

// shared is the word before a command that tests on the control plane of all.
const shared = "shared"

// split splits arguments at each "--".
func split(args []string) (all [][]string) {
	for {
		i := slices.Index(args, "--")
		if i < 0 {
			return append(all, args)
		}
		all, args = append(all, args[:i]), args[i+1:]
	}
}

// atATime is how many commands run at the same time.
const atATime = 3

// run runs the commands and writes what they tell to out. Those that share the control plane get common, too, as their
// environment.
func run(ctx context.Context, out io.Writer, common []string, commands [][]string) error {
	t := &tally{out: out}
	errs := make([]error, len(commands))
	places := make(chan struct{}, atATime)
	var running sync.WaitGroup
	for i, command := range commands {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			own, env := command, []string(nil)
			if len(command) > 0 && command[0] == shared {
				own, env = command[1:], common
			}
			if err := follow(ctx, t, env, own); err != nil {
				errs[i] = fmt.Errorf("%s: %w", strings.Join(command, " "), err)
			}
		})
	}
	running.Wait()
	t.report()
	err := errors.Join(errs...)
	if err != nil {
		fmt.Fprintln(out, "FAIL")
	}
	return err
}

// follow runs one command and hands its output to the tally, line by line.
func follow(ctx context.Context, t *tally, env, command []string) error {
	if len(command) == 0 {
		return errors.New("no command is given; write: suite go test -json PACKAGES")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its tests
	cmd.Stderr, cmd.Env = os.Stderr, append(cmd.Environ(), env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(stdout) // a line has no limit
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			t.line(strings.Join(command, " "), line)
		}
		if err != nil {
			break // all was read, which Wait requires
		}
	}
	return cmd.Wait()
}
