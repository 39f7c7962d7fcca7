package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
			token := strconv.FormatInt(time.Now().UnixNano(), 36)
			if err := t.annotate(cmd.Context(), r, api.AnnotationReconcile, token); err != nil {
				return err
			}
			if wait <= 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: asked\n", r)
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
			value, until := "true", "until it is resumed"
			if period < 0 {
				return fmt.Errorf("--for: %s is in the past", period)
			} else if period > 0 {
				value = time.Now().Add(period).UTC().Format(time.RFC3339)
				until = "until " + value
			}
			if err := t.pausable(cmd.Context(), r); err != nil {
				return err
			}
			if err := t.annotate(cmd.Context(), r, api.AnnotationPaused, value); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: paused %s\n", r, until)
			return nil
		},
	}
	k.bind(cmd, false)
	cmd.Flags().DurationVar(&period, "for", 0, "how long, such as 2h; 0 is until it is resumed")
	return cmd
}

func newResume() *cobra.Command {
	var k kube
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
			if err := t.annotate(cmd.Context(), r, api.AnnotationPaused, ""); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: resumed\n", r)
			return nil
		},
	}
	k.bind(cmd, false)
	return cmd
}

// asked returns the object that arguments name, and its cluster.
func (k *kube) asked(args []string) (target, model.Ref, error) {
	t, err := k.target()
	if err != nil {
		return target{}, model.Ref{}, err
	}
	r, err := t.object(args)
	return t, r, err
}

func objectOf(r model.Ref) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(r.APIVersion)
	u.SetKind(r.Kind)
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// annotate sets an annotation of an object, or removes it if the value is empty.
func (t target) annotate(ctx context.Context, r model.Ref, key, value string) error {
	set := any(value)
	if value == "" {
		set = nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: set}}})
	if err != nil {
		return err
	}
	err = t.client.Patch(ctx, objectOf(r), client.RawPatch(types.MergePatchType, body), client.FieldOwner("kubectl-trimtab"))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s does not exist in namespace %q", r, r.Namespace)
	}
	return err
}

// pausable refuses objects that nobody would pause.
func (t target) pausable(ctx context.Context, r model.Ref) error {
	crd, err := t.definition(ctx, r)
	if err != nil {
		return err
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		v, _ := item.(map[string]any)
		if _, has, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "status", "properties", "external"); has {
			return nil
		}
	}
	return fmt.Errorf("objects of kind %s have no external resource that could be paused; for a component, set its annotation <operator>/mode: suspended", r.Kind)
}

// definition returns the CustomResourceDefinition of an object.
func (t target) definition(ctx context.Context, r model.Ref) (*unstructured.Unstructured, error) {
	crd := objectOf(model.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"})
	kind := objectOf(r).GroupVersionKind()
	mapping, err := t.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	err = t.client.Get(ctx, types.NamespacedName{Name: mapping.Resource.GroupResource().String()}, crd)
	if apierrors.IsNotFound(err) {
		return crd, nil // a kind of Kubernetes
	}
	return crd, err
}

// await waits until an operator has acted on a token, and returns the object.
func (t target) await(ctx context.Context, r model.Ref, token string, most time.Duration) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		u := objectOf(r)
		if err := t.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil && ctx.Err() == nil {
			return nil, err
		}
		if handled, _, _ := unstructured.NestedString(u.Object, "status", "handledReconcile"); handled == token {
			return u, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: no operator has acted on it within %s; kubectl trimtab why %s says more", r, most, r)
		}
	}
}
