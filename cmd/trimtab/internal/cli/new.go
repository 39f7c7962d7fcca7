package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/scaffold"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/steps"
	"github.com/trimtab-dev/trimtab/internal/controlplane"
)

func newNew() *cobra.Command {
	var p scaffold.Project
	forms := map[scaffold.Form]*bool{scaffold.External: new(bool), scaffold.Component: new(bool), scaffold.Loop: new(bool)}
	cmd := &cobra.Command{
		Use:   "new NAME --kind KIND --external|--component|--loop",
		Short: "Make the module of a new operator",
		Long: "Makes the module of a new operator in the folder NAME: its kind, its logic, a test and an example, in 8\n" +
			"files. It works as it is; comments with TODO say what is yours to write. The files belong to you: there is\n" +
			"nothing to merge later, and go get upgrades trimtab.",
		Example: "  trimtab new widgets --kind Widget --external\n" +
			"  trimtab new shops --kind Shop --component --chart ../shop/chart --group shop.example.org",
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			for form, chosen := range forms {
				switch {
				case *chosen && p.Form != "":
					return errForm
				case *chosen:
					p.Form = form
				}
			}
			if p.Form == "" {
				return errForm
			}
			return makeProject(cmd, p.Complete())
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Kind, "kind", "", "kind of the operator's objects, such as Widget")
	f.BoolVar(forms[scaffold.External], "external", false, "an object stands for something outside the cluster: you write a driver")
	f.BoolVar(forms[scaffold.Component], "component", false, "an object stands for Kubernetes objects, with order and policies: you write a function that returns them")
	f.BoolVar(forms[scaffold.Loop], "loop", false, "you write a reconciler, which has some Kubernetes objects as children for a start")
	f.StringVar(&p.Chart, "chart", "", "folder of a Helm chart that renders the objects of a component; it is copied")
	f.StringVar(&p.Group, "group", "", "API group of the kind, a domain of yours (default: example.com)")
	f.StringVar(&p.Module, "module", "", "path of the module, such as github.com/your-name/widgets (default: example.com/NAME)")
	f.StringVar(&p.Replace, "replace", "", "folder of a checkout of trimtab to use instead of a published version (default: that from which this program was built, if it has no version)")
	return cmd
}

// errForm is returned unless exactly one form is chosen.
var errForm = errors.New("say what an object stands for with one of these: --external for something outside the cluster, " +
	"--component for a set of Kubernetes objects, --loop for a reconciler of your own")

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d names are given; name the operator and its folder, as in trimtab new widgets --kind Widget --external", len(args))
	}
	return nil
}

func makeProject(cmd *cobra.Command, p scaffold.Project) error {
	var err error
	if p.Version, p.Replace, err = source(p.Replace); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	progress := steps.New(cmd.ErrOrStderr())
	if err := progress.Run("make "+p.Name, func(*steps.Step) error { return p.Create(cmd.Context()) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), next, workspace(cmd.Context(), p.Name), p.Name)
	return err
}

// next says how to go on.
const next = `
%s  cd %s && trimtab dev

runs the operator on this machine, builds it again after each saved file, and the object in example.yaml becomes Ready.
go test ./... runs its test. Comments with TODO say what is yours to write. Without trimtab dev, after a change of the types in
the folder api: go tool trimtab gen
`

// workspace is a command that is needed if the folder is below a go.work file, which does not know the module.
func workspace(ctx context.Context, folder string) string {
	cmd := exec.CommandContext(ctx, "go", "env", "GOWORK")
	cmd.Dir = folder
	out, err := cmd.Output()
	if file := strings.TrimSpace(string(out)); err == nil && file != "" && file != "off" {
		return "  go work use " + folder + "   # " + file + " does not know the module\n"
	}
	return ""
}

// source returns the version of trimtab that a new module requires, and the checkout that replaces it, if any.
func source(replace string) (version, checkout string, err error) {
	if replace != "" {
		checkout, err = filepath.Abs(replace)
		return "v0.0.0", checkout, err
	}
	version, checkout = controlplane.Source()
	switch {
	case checkout != "":
		version = "v0.0.0"
	case version == "":
		return "", "", errors.New("this build of trimtab does not know its version; install a released one, or name a checkout with --replace")
	}
	return version, checkout, nil
}
