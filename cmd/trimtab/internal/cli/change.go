package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		err := t.make(cmd.Context(), c, dryRun)
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

// make makes a change.
func (t target) make(ctx context.Context, c model.Change, dryRun bool) error {
	body, err := c.Patch()
	if err != nil {
		return err
	}
	return t.patch(ctx, c.Object, c.UID(), body, dryRun)
}

// patch sends a merge patch for the object with a UID, and says in one sentence why it was not made.
func (t target) patch(ctx context.Context, r model.Ref, uid types.UID, body []byte, dryRun bool) error {
	options := []client.PatchOption{client.FieldOwner("kubectl-trimtab")}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	err := t.client.Patch(ctx, r.Empty(), client.RawPatch(types.MergePatchType, body), options...)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist any more", r)
	case (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) && t.replaced(ctx, r, uid):
		return replacedError(r)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s is not changed: it was changed meanwhile; look at it again, and repeat the command", r)
	case apierrors.IsForbidden(err) && !t.permitted(ctx, r):
		return fmt.Errorf("%s is not changed: you need the permission to patch it: %w", r, err)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("%s is not changed: the API server refuses it: %w; correct what it says, or ask whoever has made that rule, and repeat the command", r, err)
	}
	return fmt.Errorf("change %s: %w", r, err)
}

// replaced reports whether an object has another UID by now.
func (t target) replaced(ctx context.Context, r model.Ref, uid types.UID) bool {
	now := t.cluster().UID(ctx, r)
	return uid != "" && now != "" && now != string(uid)
}

// replacedError: what was looked at is gone.
func replacedError(r model.Ref) error {
	return fmt.Errorf("%s is not changed: it was deleted, and is another object of the same name by now; look at that one first", r)
}

// permitted reports whether the user may patch an object; true if that cannot be found out.
func (t target) permitted(ctx context.Context, r model.Ref) bool {
	allowed, err := t.mayPatch(ctx, r)
	return err != nil || allowed
}

// mayPatch asks the API server whether the user may patch an object. Admission, which comes later, may refuse it still.
func (t target) mayPatch(ctx context.Context, r model.Ref) (bool, error) {
	gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	mapping, err := t.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: r.Namespace, Verb: "patch", Group: mapping.Resource.Group, Version: mapping.Resource.Version, Resource: mapping.Resource.Resource, Name: r.Name,
	}}}
	err = t.client.Create(ctx, review)
	return review.Status.Allowed, err
}

// printChange prints a change for people.
func printChange(out io.Writer, c changed, dryRun bool) {
	switch {
	case c.Annotation == "":
		fmt.Fprintf(out, "%s: nothing to do: %s\n", c.Object, strings.Join(c.Effects, "; "))
		c.Effects = nil
	case c.Value == "" && dryRun:
		fmt.Fprintf(out, "%s: would remove annotation %s (dry run)\n", c.Object, c.Annotation)
	case c.Value == "":
		fmt.Fprintf(out, "%s: annotation %s is removed\n", c.Object, c.Annotation)
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
