package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

// The programs that the demo runs: its own, and the operator that it shows.
const (
	demoPackage     = "./cmd/trimtab/internal/demo/trimtab-demo"
	operatorPackage = "./samples/nats/cmd/nats-operator"
)

// errAlreadyReported is returned for a failure that has been printed: by the demo's program, or by go vet.
var errAlreadyReported = errors.New("what is wrong was printed")

func newDemo() *cobra.Command {
	var once bool
	var output string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a real operator at work with Kubernetes and NATS",
		Long: "Starts a Kubernetes control plane and a NATS server on this machine and runs the operator of\n" +
			"samples/nats with them. The operator creates streams, repairs drift, is killed with SIGKILL in the\n" +
			"middle of a create, and deletes everything. Each step is verified by reading Kubernetes and NATS.\n" +
			"The first run builds the programs, which takes several minutes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s: use json, or omit -o", output)
			}
			lines := cmd.OutOrStdout()
			if output == "json" {
				lines = cmd.ErrOrStderr()
			}
			steps.New(lines).Line("trimtab demo: a real operator with a real Kubernetes control plane and a real NATS server, all on this machine")
			programs, err := prepareDemo(cmd.Context(), lines)
			if err != nil {
				return err
			}
			args := []string{"--operator", filepath.Join(programs, filepath.Base(operatorPackage))}
			if once {
				args = append(args, "--once")
			}
			if output == "json" {
				args = append(args, "--json")
			}
			return inFolder(func(folder string) error {
				return play(cmd.Context(), filepath.Join(programs, filepath.Base(demoPackage)), append(args, "--folder", folder), cmd.OutOrStdout(), cmd.ErrOrStderr())
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "end after the last step; the exit code is 0 only if every step was verified")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format; json prints the steps, and the number of requests for each object, at the end")
	return cmd
}

// prepareDemo builds the programs that the demo runs and shows progress.
func prepareDemo(ctx context.Context, lines io.Writer) (programs string, err error) {
	p := steps.New(lines)
	err = p.Run("build", func(s *steps.Step) error {
		if _, err := controlplane.Binary(ctx, noted(p, s)); err != nil {
			return err
		}
		programs, err = controlplane.Programs(ctx, noted(p, s), demoPackage, operatorPackage)
		return err
	})
	return programs, err
}

// inFolder calls f with a temporary folder and removes it afterwards, even if the program that
// uses it was killed.
func inFolder(f func(folder string) error) (err error) {
	folder, err := os.MkdirTemp("", "trimtab-demo-")
	if err != nil {
		return fmt.Errorf("create a temporary folder: %w; set TMPDIR to a writable folder", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return f(folder)
}

// stopWithin is more than the demo needs to delete its objects and stop everything.
const stopWithin = 90 * time.Second

// play runs the demo's program to its end. The program is told to stop when ctx ends, and it
// ends by itself when this process dies.
func play(ctx context.Context, program string, args []string, out, errOut io.Writer) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = out, errOut
	controlplane.OwnGroup(cmd) // so that Ctrl-C reaches it only once, through cmd.Cancel
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	err = cmd.Run()
	if s := cmd.ProcessState; s != nil && s.ExitCode() == -1 && ctx.Err() == nil {
		return fmt.Errorf("the demo was killed (%s); everything it had started ends with it", s)
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return errAlreadyReported
	}
	if cmd.ProcessState != nil && cmd.ProcessState.Success() {
		return nil // Ctrl-C is the normal end of a demo that stays up
	}
	return err
}
