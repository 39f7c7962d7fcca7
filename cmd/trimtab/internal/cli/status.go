package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newSummary() *cobra.Command {
	var k kube
	cmd := &cobra.Command{
		Use:   "status [KIND]",
		Short: "Show what is not ready, worst first",
		Long: "Lists the objects of a kind, or of all custom resources, that are not ready, are being deleted or are\n" +
			"paused: what is worst first, and those of a reason together. The others are counted.",
		Example: "  kubectl trimtab status -A\n  kubectl trimtab status widgets -n shop",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := k.target()
			if err != nil {
				return err
			}
			kind := schema.GroupVersionKind{}
			if len(args) > 0 {
				if kind, err = kindOf(t.mapper, args[0]); err != nil {
					return err
				}
			}
			s, err := t.cluster().Status(cmd.Context(), kind, t.namespace)
			if err != nil {
				return err
			}
			if k.output == "json" {
				return printJSON(cmd.OutOrStdout(), s)
			}
			summarize(cmd.OutOrStdout(), s)
			return nil
		},
	}
	k.bind(cmd, true)
	return cmd
}

// summarize prints a summary for people.
func summarize(out io.Writer, s model.Summary) {
	ready, kinds := 0, make([]string, 0, len(s.Ready))
	for _, kind := range s.Kinds() {
		ready += s.Ready[kind]
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, s.Ready[kind]))
	}
	if len(s.NotReady) > 0 {
		fmt.Fprintf(out, "NOT READY %d of %d\n", len(s.NotReady), len(s.NotReady)+ready)
		w, last := newTable(out), "\x00"
		for _, o := range s.NotReady {
			why := o.Why()
			if why == last {
				why = ""
			} else {
				last = why
			}
			name := o.Name
			if o.Namespace != "" {
				name = o.Namespace + "/" + name
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", why, o.Kind, name, ago(o.Since), line(o.Message))
		}
		_ = w.Flush()
	}
	if len(s.NotReady) == 0 && ready == 0 {
		fmt.Fprintln(out, "there are no objects that could be ready")
	} else {
		fmt.Fprintf(out, "READY %d   %s\n", ready, strings.Join(kinds, "  "))
	}
	printUnseen(out, s.Unseen)
}
