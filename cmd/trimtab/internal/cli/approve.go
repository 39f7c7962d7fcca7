package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newApprove() *cobra.Command {
	var k kube
	var step string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "approve KIND/NAME",
		Short: "Release a step that an operator holds until somebody agrees",
		Long: "Shows what is held and approves exactly that, by the annotation that the status asks for: that most dependents\n" +
			"are deleted, that an external resource is recreated or left at its former endpoint, that a deletion goes on\n" +
			"without its hooks, or that dependents are left in another cluster. If several steps are held, --step says which\n" +
			"one is meant. Nothing is approved if the object has been changed since it was looked at.",
		Example: "  kubectl trimtab approve shop/a --dry-run\n  kubectl trimtab approve shop/a --step prune",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			h, err := t.cluster().Held(cmd.Context(), r)
			if err != nil {
				return err
			}
			hold, err := chosen(h, step)
			switch {
			case err != nil:
				return err
			case hold == nil:
				return k.change(cmd, t, model.Change{Object: r, Effects: []string{"nothing is held"}, Unseen: h.Unseen}, dryRun)
			}
			change := hold.Change()
			change.Unseen = h.Unseen
			return k.change(cmd, t, change, dryRun)
		},
	}
	k.bind(cmd, false)
	cmd.Flags().StringVar(&step, "step", "", "which of several steps that are held: prune, recreate, endpoint, delete-hooks or left-behind")
	bindDryRun(cmd, &dryRun)
	return cmd
}

// chosen returns the step that is to be approved: the only one, or the one that is named. It is nil if nothing is held.
func chosen(h model.Holding, step string) (*model.Hold, error) {
	var found []model.Hold
	for _, hold := range h.Held {
		if step == "" || string(hold.Step) == step {
			found = append(found, hold)
		}
	}
	var says []string
	for _, hold := range h.Held {
		says = append(says, hold.Says())
	}
	switch steps := h.Steps(); {
	case len(h.Held) == 0 && step == "":
		return nil, nil //nolint:nilnil // nothing is held
	case len(found) == 0:
		return nil, fmt.Errorf("%s: no step %q is held; held: %s", h.Object, step, orNothing(strings.Join(says, "; ")))
	case len(found) == 1 && found[0].Approval == nil:
		return nil, fmt.Errorf("%s: %s is held and cannot be approved now: %s; %s", h.Object, found[0].Step, found[0].Text, found[0].Remedy)
	case len(found) == 1:
		return &found[0], nil
	case len(steps) == 0:
		return nil, fmt.Errorf("%s: nothing that is held can be approved on the object: %s", h.Object, strings.Join(says, "; "))
	default:
		return nil, fmt.Errorf("%s: several steps are held; choose one with --step %s: %s", h.Object, strings.Join(steps, " or --step "), strings.Join(says, "; "))
	}
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
