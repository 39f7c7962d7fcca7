// Command suite runs the commands of a test suite, each of which writes what go test -json writes. It prints what go test prints
// without -json, and at the end the seconds of each package and the slowest tests. It fails if one of the commands fails.
//
// What stands between two "--" is a lane. Lanes run at the same time, so that one can use the processors while tests of another
// wait; in a lane, "then" stands between commands that run one after the other.
//
//	go run ./internal/suite go test -json ./loop -- go test -json -race ./external then go test -json ./component
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
	err := run(ctx, os.Stdout, split(os.Args[1:], "--"))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// split splits arguments at each separator.
func split(args []string, separator string) (all [][]string) {
	for {
		i := slices.Index(args, separator)
		if i < 0 {
			return append(all, args)
		}
		all, args = append(all, args[:i]), args[i+1:]
	}
}

// run runs the commands of all lanes and writes what they tell to out.
func run(ctx context.Context, out io.Writer, lanes [][]string) error {
	t := &tally{out: out}
	errs := make([]error, len(lanes))
	var running sync.WaitGroup
	for i, lane := range lanes {
		running.Go(func() {
			for _, command := range split(lane, "then") {
				if err := follow(ctx, t, command); err != nil {
					errs[i] = errors.Join(errs[i], fmt.Errorf("%s: %w", strings.Join(command, " "), err))
				}
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
			t.line(strings.Join(command, " "), line)
		}
		if err != nil {
			break // all was read, which Wait requires
		}
	}
	return cmd.Wait()
}
