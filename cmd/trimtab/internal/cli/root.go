// Package cli is the trimtab command line.
//
// [Main] runs it and answers an exit code: 0, or 1 after an error, which is one sentence on
// the standard error. What is asked for goes to the standard output, how it is going to the
// standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command that args name and answers the exit code. Commands stop in order
// when ctx ends, and leave nothing behind.
func Main(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s) //nolint:contextcheck // commands get theirs from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errToldAlready):
	case ctx.Err() != nil:
		fmt.Fprintln(s.Err, "trimtab: interrupted; nothing is left behind")
	default:
		fmt.Fprintln(s.Err, "trimtab:", err)
	}
	return 1
}

// plainly is a mistake in a flag without the words of the parser, which speaks to programmers.
func plainly(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is || invalid.GetFlag().Value.Type() != "int" {
		return err
	}
	return fmt.Errorf("--%s %q is no number", invalid.GetFlag().Name, invalid.GetValue())
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "trimtab",
		Short: "Kubernetes operators that keep course",
		Long: "trimtab runs and shows Kubernetes operators on this machine, with nothing installed but Go.\n" +
			"Each command says more with --help.",
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return plainly(err) })
	root.AddCommand(newDemo(), newCluster(), newVersion())
	return root
}
