package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// newLint runs go vet with this very program as its tool: cmd/trimtab hands what go vet asks to package lint.
func newLint() *cobra.Command {
	var crds, tags string
	var except []string
	cmd := &cobra.Command{
		Use:   "lint [packages]",
		Short: "Find mistakes in reconcilers and in CRDs",
		Long: "Looks for mistakes in reconcilers that compile, of trimtab and of plain controller-runtime, and in the\n" +
			"CRDs of a folder. It runs go vet with trimtab as its tool, which can also be done by hand:\n\n" +
			"  go vet -vettool=$(which trimtab) ./...\n\n" +
			"A comment allows what is right nevertheless: //trimtab:allow ANALYZER REASON",
		Example: "  trimtab lint --crds config/crd ./...\n" +
			"  trimtab lint --crds config/crd --except shops.example.org:spec.gitRef ./...",
		RunE: func(cmd *cobra.Command, packages []string) error {
			if len(packages) == 0 {
				packages = []string{"./..."}
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			vet := exec.CommandContext(cmd.Context(), "go", append([]string{"vet", "-tags=" + tags, "-vettool=" + self}, packages...)...)
			vet.Stdout, vet.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			failed := vet.Run()
			if exit, is := errors.AsType[*exec.ExitError](failed); failed != nil && !is {
				return fmt.Errorf("run go vet: %w", failed)
			} else if is && exit.ExitCode() < 0 {
				return failed
			}
			wrong, err := lintCRDs(cmd.ErrOrStderr(), crds, except)
			if err != nil {
				return err
			}
			if failed != nil || wrong {
				return errAlreadyReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&crds, "crds", "", "also check the CRDs in the files of this folder and those below")
	cmd.Flags().StringArrayVar(&except, "except", nil, "a field that is right nevertheless, as NAME-OF-CRD:PATH; may be repeated")
	cmd.Flags().StringVar(&tags, "tags", "", "build tags of the files to look at")
	return cmd
}
