// Package cli is the trimtab command line.
//
// [Main] runs a command and returns an exit code: 0, or 1 after an error, which is printed as
// one sentence on standard error; trimtab plan and crd diff also return 2, for a change and for what breaks. Results go to standard
// output, progress to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command that args name and returns the exit code. When ctx ends, a command
// stops, cleans up and leaves nothing behind.
func Main(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s) //nolint:contextcheck // commands get theirs from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if code, is := errors.AsType[exitError](err); is {
		return int(code)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errAlreadyReported):
	case ctx.Err() != nil:
		fmt.Fprintln(s.Err, "trimtab: interrupted; nothing is left behind")
	default:
		fmt.Fprintln(s.Err, "trimtab:", err)
	}
	return 1
}

// plainly replaces the flag parser's message about an invalid number with a readable one.
func plainly(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is || invalid.GetFlag().Value.Type() != "int" {
		return err
	}
	return fmt.Errorf("--%s: %q is not a number", invalid.GetFlag().Name, invalid.GetValue())
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "trimtab",
		Short: "Make Kubernetes operators, run them with a control plane on this machine, and see why an object is not ready",
		Long: "trimtab makes the module of a new operator, starts a Kubernetes control plane on this machine, finds mistakes\n" +
			"in the code of operators, and explains why an object of any cluster is not ready. As kubectl-trimtab in the\n" +
			"PATH, it is a plugin: kubectl trimtab why KIND/NAME. Use --help with a command to learn more about it.",
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") { // as a plugin of kubectl
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl trimtab"}
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainly(err) })
	root.AddCommand(newNew(), newDev(), newGen(), newPackage(), newCRD(), newDemo(), newCluster(), newSummary(), newWhy(), newTree(), newReconcile(), newPause(), newResume(), newAdopt(), newOrphan(), newApprove(), newHistory(), newLogs(), newUnstick(), newPlan(), newUI(), newLint(), newVersion())
	return root
}
