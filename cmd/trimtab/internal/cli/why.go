package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newWhy() *cobra.Command {
	var k kube
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Explain why an object is not ready",
		Long: "Follows what an object waits for to the root cause, and shows by what that is known, what is not the\n" +
			"cause, and what to do. It reads objects, events and leases with your permissions, and changes nothing.\n" +
			"The operator need not run.",
		Example: "  kubectl trimtab why widget/a\n  kubectl trimtab why deployment web -n shop -o json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			e, err := t.cluster().Why(cmd.Context(), r)
			if err != nil {
				return err
			}
			if k.output == "json" {
				return printJSON(cmd.OutOrStdout(), e)
			}
			explain(cmd.OutOrStdout(), e)
			return nil
		},
	}
	k.bind(cmd, false)
	return cmd
}

// explain prints an explanation for people.
func explain(out io.Writer, e model.Explanation) {
	if e.Ready {
		fmt.Fprintf(out, "%s is ready%s\n", e.Object.Ref, sinceText(e.Object))
		printUnseen(out, e.Unseen)
		return
	}
	fmt.Fprintf(out, "%s is not ready%s because\n\n", e.Object.Ref, sinceText(e.Object))
	w := newTable(out)
	for n, link := range e.Chain {
		root := ""
		if n == len(e.Chain)-1 {
			root = "◀ root cause"
		}
		fmt.Fprintf(w, "  %d  %s%s\t%s\t%s\t%s\n", n+1, strings.Repeat("  ", n), link.Ref, link.Object.Why(), line(link.Why), root)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
	w = newTable(out)
	row := func(title string, texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(w, "  %s\t%s\n", title, flat(text))
			title = ""
		}
	}
	row("Root cause", fmt.Sprintf("%s: %s", e.Cause.Code, e.Cause.Text))
	row("Known by", e.Cause.Evidence...)
	if len(e.Cleared) > 0 {
		row("Not the cause", strings.Join(e.Cleared, " · "))
	}
	row("What to do", e.Cause.Remedy)
	_ = w.Flush()
	printUnseen(out, e.Unseen)
}

func sinceText(o model.Object) string {
	if o.Since.IsZero() {
		return ""
	}
	return " for " + ago(o.Since)
}
