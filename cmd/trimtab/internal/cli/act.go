package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

func newReconcile() *cobra.Command {
	var k kube
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "reconcile KIND/NAME",
		Short: "Ask for a pass over an object now",
		Long: "Sets the annotation " + api.AnnotationReconcile + ", which operators of trimtab act on: a retry does not wait any\n" +
			"longer, and what was refused for good is tried once more. Unless --wait is 0, it waits until the operator\n" +
			"has done so, and prints what the status says then.",
		Example: "  kubectl trimtab reconcile widget/a --wait 1m",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			token := newToken()
			change, err := t.cluster().Reconcile(cmd.Context(), r, token)
			if err != nil {
				return err
			}
			if err := t.make(cmd.Context(), change, false); err != nil {
				return err
			}
			if wait <= 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: asked: %s\n", r, strings.Join(change.Effects, "; "))
				printUnseen(cmd.OutOrStdout(), change.Unseen)
				return nil
			}
			handled, err := t.await(cmd.Context(), r, token, wait)
			if err != nil {
				return err
			}
			state, _, _ := unstructured.NestedString(handled.Object, "status", "state")
			message, _, _ := unstructured.NestedString(handled.Object, "status", "message")
			fmt.Fprintf(cmd.OutOrStdout(), "%s: reconciled. %s: %s\n", r, state, flat(message))
			return nil
		},
	}
	k.bind(cmd, false)
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for the pass; 0 does not wait")
	return cmd
}

func newPause() *cobra.Command {
	var k kube
	var period time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "pause KIND/NAME",
		Short: "Have the external resource of an object left as it is",
		Long: "Sets the annotation " + api.AnnotationPaused + ": the external resource is observed and reported, and not changed, until\n" +
			"the time is over or the object is resumed. A deletion of the object goes on.",
		Example: "  kubectl trimtab pause widget/a --for 2h",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			until := ""
			if period < 0 {
				return fmt.Errorf("--for: %s is in the past", period)
			} else if period > 0 {
				until = time.Now().Add(period).UTC().Format(time.RFC3339)
			}
			change, err := t.cluster().Pause(cmd.Context(), r, until)
			if err != nil {
				return err
			}
			return k.change(cmd, t, change, dryRun)
		},
	}
	k.bind(cmd, false)
	bindDryRun(cmd, &dryRun)
	cmd.Flags().DurationVar(&period, "for", 0, "how long, such as 2h; 0 is until it is resumed")
	return cmd
}

func newResume() *cobra.Command {
	var k kube
	var dryRun bool
	cmd := &cobra.Command{
		Use:     "resume KIND/NAME",
		Short:   "End the pause of an object",
		Long:    "Removes the annotation " + api.AnnotationPaused + ".",
		Example: "  kubectl trimtab resume widget/a",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, r, err := k.asked(args)
			if err != nil {
				return err
			}
			change, err := t.cluster().Resume(cmd.Context(), r)
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

// newToken is a value of the annotation that asks for a pass which it has not had before.
func newToken() string { return strconv.FormatInt(time.Now().UnixNano(), 36) }

// await waits until an operator has acted on a token, and returns the object.
func (t target) await(ctx context.Context, r model.Ref, token string, most time.Duration) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		u := r.Empty()
		if err := t.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil && ctx.Err() == nil {
			return nil, err
		}
		if handled, _, _ := unstructured.NestedString(u.Object, "status", "handledReconcile"); handled == token {
			return u, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no operator has acted on it within %s; what says more: %s", r, most, t.cluster().Verb("why", r))
		}
	}
}
