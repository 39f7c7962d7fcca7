package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newHistory() *cobra.Command {
	var k kube
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show what has happened to an object, in the order of time",
		Long: "Puts on one time axis what the API server tells of the past of an object: who wrote its spec and when, when its\n" +
			"conditions changed, failed attempts and other events, what status.history has, and since when its operator\n" +
			"leads. It says what is not kept. The object need not exist any more, as long as there are events about it.",
		Example: "  kubectl trimtab history widget/a --since 1h",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if since < 0 {
				return fmt.Errorf("--since: %s is in the future; use a duration such as 1h", since)
			}
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			h, err := t.cluster().History(cmd.Context(), r)
			if err != nil {
				return err
			}
			if since > 0 {
				h.Since(time.Now().Add(-since))
			}
			if k.output == "json" {
				return printJSON(cmd.OutOrStdout(), h)
			}
			narrate(cmd.OutOrStdout(), h, time.Now())
			return nil
		},
	}
	k.bind(cmd, false)
	cmd.Flags().DurationVar(&since, "since", 0, "only what happened within this time, such as 1h; 0 is all")
	return cmd
}

// narrate prints a history for people.
func narrate(out io.Writer, h model.History, now time.Time) {
	if len(h.Moments) == 0 {
		fmt.Fprintf(out, "%s: nothing happened in that time, as far as it is known\n", h.Object)
	}
	w := newTable(out)
	for _, m := range h.Moments {
		form := time.DateTime
		if now.Sub(m.At.Time) < 12*time.Hour {
			form = time.TimeOnly
		}
		by := ""
		if m.By != "" {
			by = "by " + m.By
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.At.Local().Format(form), m.What, line(m.Text), by)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\nNot kept: %s\n", strings.Join(h.Limits, "\n          "))
	printUnseen(out, h.Unseen)
}
