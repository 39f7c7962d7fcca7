package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/internal/packaging"
)

const uninstallCommand = "uninstall"

// What becomes of objects when the operator goes.
const (
	policyRefuse  = "refuse"
	policyCascade = "cascade"
	policyOrphan  = "orphan"
)

func uninstallCmd(o Options) *cobra.Command {
	u := uninstall{options: o}
	cmd := &cobra.Command{
		Use:   uninstallCommand + " [-- MANAGER-FLAG...]",
		Short: "Make sure that no object is left that only the operator can delete",
		Long: "Make sure that no object is left that only the operator can delete, before it is uninstalled. This concerns\n" +
			"objects of its own kinds, and others that have its finalizer. The Helm chart runs it as a hook. --policy says\n" +
			"what becomes of such objects:\n\n" +
			"  refuse   the command fails, and lists them\n" +
			"  cascade  they are deleted, and so is what they stand for; the operator has to run\n" +
			"  orphan   the operator is stopped and its finalizers are removed; they stay, and so does what they stand for\n\n" +
			"Arguments after -- are flags that the operator is run with.",
		RunE: func(cmd *cobra.Command, args []string) error {
			n := cmd.ArgsLenAtDash()
			if n < 0 {
				n = len(args)
			}
			if n > 0 {
				return fmt.Errorf("too many arguments %q; see %s --help", args[:n], cmd.CommandPath())
			}
			u.out = cmd.OutOrStdout()
			return u.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVar(&u.policy, "policy", policyRefuse, "refuse, cascade or orphan")
	cmd.Flags().DurationVar(&u.timeout, "timeout", 5*time.Minute, "how long it may take until all objects are deleted")
	return cmd
}

// uninstall is one run of the command.
type uninstall struct {
	options Options
	policy  string
	timeout time.Duration
	out     io.Writer

	client    client.Client
	namespace string // of the operator
	name      string // of its Deployment
	kinds     []heldKind
	scope     []string // namespaces; the empty one means all
}

// heldKind is a kind of which objects may need the operator for their deletion.
type heldKind struct {
	packaging.Kind

	own       bool   // defined by the operator
	finalizer string // that the operator writes; may be empty
}

func (u *uninstall) run(ctx context.Context, args []string) error {
	if !slices.Contains([]string{policyRefuse, policyCascade, policyOrphan}, u.policy) {
		return fmt.Errorf("--policy %q: use %s, %s or %s", u.policy, policyRefuse, policyCascade, policyOrphan)
	}
	if err := u.connect(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	if u.policy == policyOrphan {
		return u.orphan(ctx)
	}
	held, err := u.held(ctx)
	switch {
	case err != nil:
		return err
	case len(held) == 0:
		return u.say("no object needs the operator")
	case u.policy == policyRefuse:
		return fmt.Errorf("%s; nothing would delete what they stand for once the operator is gone. Delete them first, or choose another policy "+
			"(--policy, or uninstall.policy among the values of the chart; helm rollback to the present revision, and helm upgrade, before helm uninstall): "+
			"cascade deletes them, orphan leaves them and what they stand for", listed(held))
	}
	return u.cascade(ctx, held)
}

func (u *uninstall) say(format string, args ...any) error {
	_, err := fmt.Fprintf(u.out, u.options.Name+": "+format+"\n", args...)
	return err
}

// connect reads the operator, and finds its cluster.
func (u *uninstall) connect(args []string) error {
	i, err := u.options.installation(&ManifestOptions{Args: args}, partRBAC, func(string) {})
	if err != nil {
		return err
	}
	if u.kinds, err = i.design.heldKinds(); err != nil {
		return err
	}
	t, err := findCluster(i.settings)
	if err != nil {
		return err
	}
	u.namespace, u.name, u.scope = t.namespace, i.design.terms.Installation, i.settings.worksIn()
	u.client, err = client.New(t.config, client.Options{Scheme: i.design.scheme})
	if err != nil {
		return fmt.Errorf("the configuration of the cluster is invalid: %w", err)
	}
	return nil
}

// held returns the kinds of which objects may hold up an uninstallation.
func (d *design) held() ([]packaging.Kind, error) {
	kinds, err := d.heldKinds()
	var out []packaging.Kind
	for _, k := range kinds {
		out = append(out, k.Kind)
	}
	return out, err
}

// heldKinds returns the kinds that the operator defines, and those whose objects get a finalizer of it.
func (d *design) heldKinds() ([]heldKind, error) {
	var out []heldKind
	for _, crd := range d.resources.crds {
		for _, v := range crd.Spec.Versions {
			if v.Storage {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
				out = append(out, heldKind{Kind: packaging.Kind{GroupVersionKind: gvk, Resource: crd.Spec.Names.Plural}, own: true})
			}
		}
	}
	for i, kind := range d.kinds {
		name, _, resource, err := d.finalizer(i)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(out, func(k heldKind) bool { return k.GroupKind() == kind.GroupKind() })
		switch {
		case at >= 0 && name != "":
			out[at].finalizer = name
		case at < 0 && name != "":
			out = append(out, heldKind{Kind: packaging.Kind{GroupVersionKind: kind, Resource: resource}, finalizer: name})
		}
	}
	return out, nil
}

// heldObject is an object that needs the operator.
type heldObject struct {
	*metav1.PartialObjectMetadata

	kind heldKind
}

func (o heldObject) String() string {
	return o.kind.GroupVersionKind.Kind + " " + client.ObjectKeyFromObject(o).String()
}

// listed names objects, some of them if there are many.
func listed(objects []heldObject) string {
	const most = 20
	var names []string
	for _, o := range objects {
		names = append(names, strings.Replace(o.String(), " /", " ", 1)) // of the whole cluster
	}
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	if len(objects) == 1 {
		return "1 object exists: " + names[0]
	}
	return fmt.Sprintf("%d objects exist: %s", len(objects), strings.Join(names, ", "))
}

// held returns the objects that need the operator.
func (u *uninstall) held(ctx context.Context) ([]heldObject, error) {
	var out []heldObject
	for _, kind := range u.kinds {
		for _, namespace := range u.scope {
			some, err := u.list(ctx, kind, namespace)
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
			}
			out = append(out, some...)
		}
	}
	return out, nil
}

func (u *uninstall) list(ctx context.Context, kind heldKind, namespace string) ([]heldObject, error) {
	var out []heldObject
	served, err := u.served(kind.GroupVersionKind)
	if meta.IsNoMatchError(err) {
		return nil, nil // the cluster does not have the kind
	}
	if err != nil {
		return nil, err
	}
	kind.GroupVersionKind = served
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
		err := u.client.List(ctx, page, client.InNamespace(namespace), client.Limit(500), client.Continue(next))
		if apierrors.IsNotFound(err) {
			return nil, nil // the kind is gone by now
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			o := heldObject{&page.Items[i], kind}
			o.SetGroupVersionKind(kind.GroupVersionKind)
			if kind.own || slices.Contains(o.Finalizers, kind.finalizer) {
				out = append(out, o)
			}
		}
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}

// served returns a kind in a version that the cluster serves: if that of this program is another one, the objects are there all
// the same.
func (u *uninstall) served(kind schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	mapping, err := u.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		mapping, err = u.client.RESTMapper().RESTMapping(kind.GroupKind())
	}
	if err != nil {
		return kind, err
	}
	return mapping.GroupVersionKind, nil
}

// cascade deletes objects, and waits until they are gone.
func (u *uninstall) cascade(ctx context.Context, held []heldObject) error {
	for _, o := range held {
		if err := u.client.Delete(ctx, o.PartialObjectMetadata); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s: %w", o, err)
		}
		if err := u.say("deleting %s", o); err != nil {
			return err
		}
	}
	var left []heldObject
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		now, err := u.held(ctx)
		if ctx.Err() == nil {
			left = now
		}
		return err == nil && len(now) == 0, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("after %s, %s; their conditions say what their deletion waits for. Uninstall again when that is settled", u.timeout, listed(left))
	}
	return err
}

// orphan stops the operator, so that it does not write its finalizers again, and removes them.
func (u *uninstall) orphan(ctx context.Context) error {
	if err := u.stop(ctx); err != nil {
		return err
	}
	held, err := u.held(ctx)
	if err != nil {
		return err
	}
	for _, o := range held {
		if err := u.release(ctx, o); err != nil {
			return fmt.Errorf("remove the finalizer from %s: %w", o, err)
		}
		if err := u.say("left %s", o); err != nil {
			return err
		}
	}
	return nil
}

// stop scales the operator's Deployment to zero, and waits until no replica is left.
func (u *uninstall) stop(ctx context.Context) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: u.name}}
	scale := &autoscalingv1.Scale{}
	err := u.client.SubResource("scale").Get(ctx, d, scale)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && scale.Spec.Replicas != 0 {
		scale.Spec.Replicas = 0
		err = u.client.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale))
	}
	if err != nil {
		return fmt.Errorf("stop the operator: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := u.client.SubResource("scale").Get(ctx, d, scale)
		return err == nil && scale.Status.Replicas == 0, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until the operator has stopped: %w", err)
	}
	return nil
}

// release removes the operator's finalizer from an object.
func (u *uninstall) release(ctx context.Context, o heldObject) error {
	for {
		at := slices.Index(o.Finalizers, o.kind.finalizer)
		if o.kind.finalizer == "" || at < 0 {
			return nil
		}
		before := o.DeepCopy()
		o.Finalizers = slices.Delete(o.Finalizers, at, at+1)
		err := u.client.Patch(ctx, o.PartialObjectMetadata, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		if err := u.client.Get(ctx, client.ObjectKeyFromObject(o), o.PartialObjectMetadata); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
}
