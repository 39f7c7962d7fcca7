package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

// newGen generates what belongs to the kinds of the module in the working directory.
func newGen() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Generate deep copies and CRDs of the kinds of a module",
		Long: "Generates deep copies and CRDs for the API packages of the module in the working directory: those whose\n" +
			"types have markers such as +kubebuilder:object:root. The CRDs of a package below a folder api go to the\n" +
			"folder crds beside that. Run it whenever these types change. It prints the files that it changes.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := moduleRoot()
			if err != nil {
				return err
			}
			want, err := kindgen.Module(cmd.Context(), root, nil)
			if err != nil {
				return err
			}
			if len(want) == 0 {
				return fmt.Errorf("no types in %s have markers such as +kubebuilder:object:root=true; trimtab new shows a kind that has them", root)
			}
			stale, err := kindgen.Stale(root, want)
			if err != nil {
				return err
			}
			if check {
				return kindgen.Report(stale, "trimtab gen")
			}
			if err := kindgen.Write(root, want, stale); err != nil {
				return err
			}
			for _, path := range stale {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing, and fail if a generated file is not current")
	return cmd
}

// moduleRoot returns the folder of the go.mod file in the working directory or above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return moduleAbove(dir)
}

// moduleAbove returns the folder of the go.mod file in an absolute folder or above it.
func moduleAbove(dir string) (string, error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod at or above %s; run this in the module of an operator", dir)
		}
	}
}
