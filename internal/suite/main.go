// Command suite runs the commands of a test suite at the same time, so that one can use the processors while tests of
// another wait. Each command writes what go test -json writes. suite prints what go test prints without -json, and at the
// end the seconds of each package and the slowest tests. It fails if one of the commands fails.
//
//	go run ./internal/suite go test -json ./loop -- go test -json -race ./external
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, commands(os.Args[1:]))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// commands splits arguments at each "--".
func commands(args []string) (all [][]string) {
	for {
		i := slices.Index(args, "--")
		if i < 0 {
			return append(all, args)
		}
		all, args = append(all, args[:i]), args[i+1:]
	}
}

// run runs the commands and writes what they tell to out.
func run(ctx context.Context, out io.Writer, all [][]string) error {
	t := &tally{out: out}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, command := range all {
		running.Go(func() {
			if err := follow(ctx, t, command); err != nil {
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
func follow(ctx context.Context, t *tally, command []string) error {
	if len(command) == 0 {
		return errors.New("no command is given; write: suite go test -json PACKAGES")
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its tests
	cmd.Stderr = os.Stderr
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
			t.line(line)
		}
		if err != nil {
			break // all was read, which Wait requires
		}
	}
	return cmd.Wait()
}
