package cli

import (
	"github.com/spf13/cobra"

	"github.com/trimtab-dev/trimtab/api"
)

func newAdopt() *cobra.Command {
	var k kube
	var from string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "adopt KIND/NAME",
		Short: "Have an object take over what exists already",
		Long: "Sets the annotation " + api.AnnotationAdoption + " of an object, so that its operator takes over the external resource\n" +
			"that has the name which the spec yields, instead of creating one. If the mark of another object is on the\n" +
			"resource, --from names that object by its UID, which the status says. For a component that was restored from\n" +
			"a backup, --from is the UID that it had, and its dependents are taken over.",
		Example: "  kubectl trimtab adopt widget/a --dry-run\n  kubectl trimtab adopt widget/a --from 1f0c2d6e-8a51-4a7e-9a52-0c61a0a2b1d5",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			change, err := t.cluster().Adopt(cmd.Context(), r, from)
			if err != nil {
				return err
			}
			return k.change(cmd, t, change, dryRun)
		},
	}
	k.bind(cmd, false)
	cmd.Flags().StringVar(&from, "from", "", "UID of the present owner; empty if no other object's mark is on the resource")
	bindDryRun(cmd, &dryRun)
	return cmd
}

func newOrphan() *cobra.Command {
	var k kube
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "orphan KIND/NAME",
		Short: "Have what an object stands for stay when the object is deleted",
		Long: "Sets the annotation " + api.AnnotationDeletion + ": orphan of an object with an external resource, or names all dependents\n" +
			"of a component in its annotation <operator>/abandon. It deletes nothing, and shows what is kept when the object\n" +
			"is deleted, and what is not.",
		Example: "  kubectl trimtab orphan widget/a --dry-run",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			change, err := t.cluster().Orphan(cmd.Context(), r)
			if err != nil {
				return err
			}
			return k.change(cmd, t, change, dryRun)
		},
	}
	k.bind(cmd, false)
	bindDryRun(cmd, &dryRun)
	return cmd
}
