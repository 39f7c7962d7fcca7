package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newTree() *cobra.Command {
	var k kube
	cmd := &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show what an object is made of",
		Long: "Shows an object with its dependents, the objects that it owns, and its external resource, what is not\n" +
			"ready first. Objects are read with your permissions.",
		Example: "  kubectl trimtab tree widget/a",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			o, unseen := t.cluster().Tree(cmd.Context(), r)
			if o.Missing() {
				return fmt.Errorf("%s does not exist", r)
			}
			if k.output == "json" {
				return printJSON(cmd.OutOrStdout(), struct {
					model.Object
					Unseen []string `json:"unseen,omitempty"`
				}{o, unseen})
			}
			w := newTable(cmd.OutOrStdout())
			fmt.Fprintln(w, "NAME\tSTATE\tREADY\tAGE\tMESSAGE")
			draw(w, o, "", "")
			if err := w.Flush(); err != nil {
				return err
			}
			printUnseen(cmd.OutOrStdout(), unseen)
			return nil
		},
	}
	k.bind(cmd, false)
	return cmd
}

// draw prints an object and what is below it. first and rest are what stands before its line and before the others.
func draw(out io.Writer, o model.Object, first, rest string) {
	state, message := o.State, o.Message
	if state == "" {
		state = o.Reason
	}
	if o.Deleting {
		state = "Deleting"
	}
	fmt.Fprintf(out, "%s%s\t%s\t%s\t%s\t%s\n", first, o.Ref, state, mark(o), ago(o.Created), line(message))
	for n, next := range o.Objects {
		branch, below := "├─ ", "│  "
		if n == len(o.Objects)-1 {
			branch, below = "└─ ", "   "
		}
		draw(out, next, rest+branch, rest+below)
	}
}
