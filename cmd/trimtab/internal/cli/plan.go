package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
)

// exitError is the error of a command that has said all, and ends with a code of its own.
type exitError int

func (c exitError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// planning are the flags of the command "plan".
type planning struct {
	operator, file, namespace, kubeconfig, output string
	runReconcile                                  bool
}

// newPlan runs the command "plan" of an operator: only that has the code of its controllers.
func newPlan() *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "plan (KIND/NAME | -f FILE) [-- OPERATOR-FLAG...]",
		Short: "Print what the next pass over an object would do, by the operator's own code",
		Long: "Print what the next pass over an object would do, by the operator's own code and without changing anything.\n" +
			"The code is that of the operator in --operator, or of the program in the current folder, which is built first.\n" +
			"Such a binary has the same command: OPERATOR plan KIND/NAME. Arguments after -- are flags that it is run with.\n" +
			"The exit code is 0 if nothing would be changed, 1 after an error, and 2 if something would be changed.",
		Example: "  trimtab plan folder/orders -n shop\n" +
			"  trimtab plan -f orders.yaml --operator ./folders",
		RunE: func(cmd *cobra.Command, args []string) error {
			own, others := args, []string(nil)
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				own, others = args[:n], args[n:]
			}
			if len(own) > 1 {
				return fmt.Errorf("plan takes one object, and %q are several; flags of the operator come after --", own)
			}
			return p.run(cmd, own, others)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.operator, "operator", "", "binary of the operator (default: the program in the current folder, which is built)")
	f.StringVarP(&p.file, "filename", "f", "", "file with the objects; - means standard input")
	f.StringVarP(&p.namespace, "namespace", "n", "", "namespace of the object (default: that of the kubeconfig)")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: as kubectl)")
	f.StringVarP(&p.output, "output", "o", "", "json for programs; empty for people")
	f.BoolVar(&p.runReconcile, "run-reconcile", false, "run the code of a controller also if it may call other systems by itself, which a plan cannot hold back")
	return cmd
}

// run runs the operator's command.
func (p *planning) run(cmd *cobra.Command, object, flags []string) error {
	binary, remove, err := p.binary(cmd.Context())
	if err != nil {
		return err
	}
	defer remove()
	args := append([]string{"plan"}, object...)
	for name, value := range map[string]string{"filename": p.file, "object-namespace": p.namespace, "kubeconfig": p.kubeconfig, "output": p.output} {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	if p.runReconcile {
		args = append(args, "--run-reconcile")
	}
	c := exec.CommandContext(cmd.Context(), binary, append(args, flags...)...)
	c.Stdin, c.Stdout, c.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	err = c.Run()
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() > 0 {
		return exitError(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run the operator %s: %w", binary, err)
	}
	return nil
}

// binary returns the path of the operator, and what removes it if it was built for this command.
func (p *planning) binary(ctx context.Context) (path string, remove func(), err error) {
	if p.operator != "" {
		path, err = exec.LookPath(p.operator)
		if err != nil {
			return "", nil, fmt.Errorf("--operator: %w", err)
		}
		return path, func() {}, nil
	}
	name, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}}", ".").Output()
	if err != nil || string(name) != "main\n" {
		return "", nil, errors.New("only the operator has the code that a plan needs, and the current folder is no program in Go; " +
			"name the operator's binary with --operator, or run this in the folder of its main package")
	}
	folder, err := os.MkdirTemp("", "trimtab-plan-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the operator: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) }
	path = filepath.Join(folder, "operator")
	if said, err := exec.CommandContext(ctx, "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build the operator in the current folder: %w\n%s", err, said)
	}
	return path, remove, nil
}
