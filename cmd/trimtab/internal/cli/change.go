package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// changed is a change, and what has become of it.
type changed struct {
	model.Change
	// Done: the object was changed.
	Done bool `json:"done"`
	// Refused is why the API server would not make the change. Only a dry run has it.
	Refused string `json:"refused,omitempty"`
}

// change makes a change and prints it. A dry run asks the API server whether it would make it, and prints the change whatever
// the answer is, so that it needs no more than permissions to read.
func (k *kube) change(cmd *cobra.Command, t target, c model.Change, dryRun bool) error {
	result := changed{Change: c}
	if c.Annotation != "" {
		body, err := c.Patch()
		if err != nil {
			return err
		}
		err = t.patch(cmd, c.Object, types.MergePatchType, body, dryRun)
		switch {
		case err == nil:
			result.Done = !dryRun
		case dryRun:
			result.Refused = flat(err.Error())
		default:
			return err
		}
	}
	if k.output == "json" {
		return printJSON(cmd.OutOrStdout(), result)
	}
	printChange(cmd.OutOrStdout(), result, dryRun)
	return nil
}

// patch sends a patch, and says in one sentence why it was not made.
func (t target) patch(cmd *cobra.Command, r model.Ref, kind types.PatchType, body []byte, dryRun bool) error {
	options := []client.PatchOption{client.FieldOwner("kubectl-trimtab")}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	err := t.client.Patch(cmd.Context(), r.Empty(), client.RawPatch(kind, body), options...)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s is not changed: you need the permission to patch it: %w", r, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s is not changed: it was changed meanwhile; look at it again, and repeat the command", r)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist any more", r)
	}
	return err
}

// printChange prints a change for people.
func printChange(out io.Writer, c changed, dryRun bool) {
	switch {
	case c.Annotation == "":
		fmt.Fprintf(out, "%s: nothing to do: %s\n", c.Object, strings.Join(c.Effects, "; "))
		c.Effects = nil
	case dryRun:
		fmt.Fprintf(out, "%s: would set annotation %s: %s (dry run)\n", c.Object, c.Annotation, line(c.Value))
	default:
		fmt.Fprintf(out, "%s: annotation %s: %s\n", c.Object, c.Annotation, line(c.Value))
	}
	w := newTable(out)
	row := func(title string, texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(w, "  %s\t%s\n", title, text)
			title = ""
		}
	}
	row("Refused", nonEmpty(c.Refused)...)
	row("Effect", c.Effects...)
	row("Kept", c.Kept...)
	row("Not kept", c.Gone...)
	row("Undo", nonEmpty(c.Undo)...)
	_ = w.Flush()
	printUnseen(out, c.Unseen)
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func bindDryRun(cmd *cobra.Command, dryRun *bool) {
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "show what would be done, and whether you may do it")
}
