package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newUnstick() *cobra.Command {
	var k kube
	var remove string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "unstick KIND/NAME",
		Short: "Explain what keeps an object that is being deleted, and remove a finalizer",
		Long: "Explains for each finalizer of an object what it protects, who removes it, whether that one runs, and what stays\n" +
			"behind if it is removed by hand. It removes nothing unless --remove names a finalizer, and then only from the\n" +
			"object that it has shown, if nobody has changed that meanwhile. What a finalizer protects is lost track of.",
		Example: "  kubectl trimtab unstick widget/a\n  kubectl trimtab unstick widget/a --remove widgets.example.org/finalizer --dry-run",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dryRun && remove == "" {
				return fmt.Errorf("--dry-run is for --remove; without --remove, nothing is changed anyway")
			}
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			s, err := t.cluster().Stuck(cmd.Context(), r)
			if err != nil {
				return err
			}
			result := removal{Stuck: s, next: t.cluster().Verb("why", r)}
			if remove != "" {
				if err := result.remove(cmd, t, remove, dryRun); err != nil {
					return err
				}
			}
			if k.output == "json" {
				return printJSON(cmd.OutOrStdout(), result)
			}
			result.print(cmd.OutOrStdout(), remove)
			return nil
		},
	}
	k.bind(cmd, false)
	cmd.Flags().StringVar(&remove, "remove", "", "the finalizer to remove")
	bindDryRun(cmd, &dryRun)
	return cmd
}

// removal is an object with its finalizers, and what has become of one.
type removal struct {
	model.Stuck
	// Removed is the finalizer that was removed, and WouldRemove that of a dry run.
	Removed     string `json:"removed,omitempty"`
	WouldRemove string `json:"wouldRemove,omitempty"`
	// Refused is why the API server would not remove it. Only a dry run has it.
	Refused string `json:"refused,omitempty"`

	next string // the command that explains why it is not deleted
}

func (m *removal) remove(cmd *cobra.Command, t target, name string, dryRun bool) error {
	body, err := m.Remove(name)
	if err != nil {
		return err
	}
	err = t.patch(cmd.Context(), m.Object, m.UID(), body, dryRun)
	switch {
	case dryRun:
		m.WouldRemove = name
		if err != nil {
			m.Refused = flat(err.Error())
		}
		return nil
	case err != nil:
		return err
	}
	m.Removed = name
	return nil
}

// print prints it for people.
func (m *removal) print(out io.Writer, asked string) {
	w := newTable(out)
	row := func(title string, texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(w, "  %s\t%s\n", title, text)
			title = ""
		}
	}
	switch {
	case m.Removed != "":
		fmt.Fprintf(out, "%s: finalizer %s is removed; this cannot be undone once the object is gone\n", m.Object, m.Removed)
		row("Left behind", m.Guard(asked).Leaks...)
	case m.WouldRemove != "":
		fmt.Fprintf(out, "%s: finalizer %s would be removed (dry run)\n", m.Object, m.WouldRemove)
		row("Refused", nonEmpty(m.Refused)...)
		row("Left behind", m.Guard(asked).Leaks...)
	default:
		fmt.Fprintln(out, m.headline())
		for _, f := range m.Finalizers {
			fmt.Fprintf(w, "\n  %s\n", f.Name)
			row("  Protects", f.Protects)
			row("  Removed by", f.Owner)
			row("  Alive", f.Alive)
			row("  Set by", nonEmpty(f.SetBy)...)
			row("  Without it", f.Leaks...)
		}
		if !m.Deleting.IsZero() && len(m.Finalizers) > 0 {
			fmt.Fprintf(w, "\n  What to do\t%s; if its owner will never run again, and what is left behind is dealt with: --remove FINALIZER\n", m.next)
		}
	}
	_ = w.Flush()
	printUnseen(out, m.Unseen)
}

func (m *removal) headline() string {
	switch {
	case len(m.Finalizers) == 0:
		return fmt.Sprintf("%s has no finalizers: nothing keeps it when it is deleted", m.Object)
	case m.Deleting.IsZero():
		return fmt.Sprintf("%s is not being deleted. When it is, it waits for:", m.Object)
	}
	text := fmt.Sprintf("%s is being deleted for %s and waits for:", m.Object, ago(m.Deleting))
	if m.Message != "" {
		text += "\n  status: " + m.Message
	}
	return text
}
