package helm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component"
)

// unclaimed returns an error if what a new component is about to create belongs to a Helm release. It is asked once: hooks
// of installations would run before the first object of the release is met.
func unclaimed(ctx context.Context, r *Release, set *component.Set) error {
	owner, err := component.ComponentFromContext(ctx)
	if err != nil {
		return err
	}
	c, ok := owner.(component.Object)
	if !ok || r.Revision != 1 || r.taken != nil {
		return nil
	}
	if s := c.GetStatus(); len(s.Inventory) > 0 || s.CompactInventory != "" || len(s.InventoryShards) > 0 {
		return nil
	}
	annotation, err := annotationOf(ctx)
	if err != nil {
		return err
	}
	objects, err := set.Annotated("", nil)
	if err != nil {
		return err
	}
	all, err := mayExist(ctx, r)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetAnnotations()[release.HookAnnotation] != "" || o.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
			continue
		}
		if err := free(ctx, o, r, annotation); err != nil || !all {
			return err
		}
	}
	return nil
}

// mayExist reports whether there is a Helm release of the name of r, or the operator may not know. Then any object may be
// that release's. Otherwise one is asked for those of other releases.
func mayExist(ctx context.Context, r *Release) (bool, error) {
	secrets := &unstructured.UnstructuredList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := component.LookupList(ctx, r.Namespace, secrets)
	switch {
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("find the Helm release %s/%s: %w", r.Namespace, r.Name, err)
	}
	return slices.ContainsFunc(secrets.Items, func(s unstructured.Unstructured) bool {
		labels := s.GetLabels()
		return s.Object["type"] == releaseType && labels[ownerLabel] == ownedByHelm && labels["name"] == r.Name
	}), nil
}

// free returns an error if an object belongs to a Helm release.
func free(ctx context.Context, o client.Object, r *Release, annotation string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	key := client.ObjectKey{Namespace: cmp.Or(o.GetNamespace(), r.Namespace), Name: o.GetName()}
	err := component.Lookup(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return nil // whoever creates it reports what is wrong
	case err != nil:
		return fmt.Errorf("find out whether the %s %s belongs to a Helm release: %w", live.GetKind(), key, err)
	}
	switch of := api.HelmReleaseOf(live.GetAnnotations()); {
	case of == "", live.GetAnnotations()[strings.TrimSuffix(annotation, api.SuffixHelmRelease)+"owner-id"] != "":
		return nil
	case of == r.Namespace+"/"+r.Name:
		return fmt.Errorf("the %s %s belongs to the Helm release %s; to take it over, set the annotation %s: %s on the component",
			live.GetKind(), key, of, annotation, takeUnchanged)
	default:
		return fmt.Errorf("the %s %s belongs to the Helm release %s; choose another name, or remove its annotation %s",
			live.GetKind(), key, of, api.AnnotationHelmReleaseName)
	}
}

// genuine returns an error if a release has an object that neither exists as the release's nor is in the chart. Whoever
// may write Secrets could have the operator create what he may not create himself.
func (g *Generator) genuine(ctx context.Context, r *Release, stored *component.Set) error {
	t := r.taken
	if t == nil || !t.stored {
		return nil
	}
	annotation, err := annotationOf(ctx)
	if err != nil {
		return err
	}
	fresh := *r
	fresh.taken = nil
	rendered, err := g.execute(ctx, &fresh, &draws{}) // of which only names count
	if err != nil {
		return err
	}
	objects, err := rendered.Annotated("", nil)
	if err != nil {
		return err
	}
	key := func(o client.Object) string {
		kind := o.GetObjectKind().GroupVersionKind()
		return api.InventoryItem{Group: kind.Group, Kind: kind.Kind, Namespace: cmp.Or(o.GetNamespace(), r.Namespace), Name: o.GetName()}.Key()
	}
	named := map[string]bool{}
	for _, o := range objects {
		named[key(o)] = true
	}
	for _, s := range t.secrets {
		named[secretKey(s.Namespace, s.Name)] = true
	}
	if objects, err = stored.Annotated("", nil); err != nil {
		return err
	}
	for _, o := range objects {
		if named[key(o)] {
			continue
		}
		has, err := t.owns(ctx, o)
		if err != nil {
			return err
		}
		if !has {
			return fmt.Errorf("version %d of the Helm release %s/%s has the %s %s, which neither exists as its own nor is in the chart; mend the release with Helm, or set the annotation %s to %q",
				t.last.Version, t.namespace, t.name, o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), annotation, takeUpgrade)
		}
	}
	return nil
}

// owns reports whether an object exists as that of the release, and is no hook.
func (t *taken) owns(ctx context.Context, o client.Object) (bool, error) {
	if o.GetAnnotations()[release.HookAnnotation] != "" {
		return false, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	live, err := t.live(ctx, u)
	return live != nil && api.HelmReleaseOf(live.GetAnnotations()) == t.namespace+"/"+t.name, err
}

// announce records an event when the last Secret of a release has changed hands. A process that starts after that records
// none.
func (g *Generator) announce(ctx context.Context, t *taken) error {
	if t == nil {
		return nil
	}
	owner, err := component.ComponentFromContext(ctx)
	if err != nil {
		return err
	}
	to, reason, note := ownedByUs, "HelmReleaseTakenOver", "version %d of the Helm release %s/%s belongs to the component; Helm does not see it any more"
	if t.mode == giveBack {
		to, reason, note = ownedByHelm, "HelmReleaseReturned", "version %d of the Helm release %s/%s is Helm's again; the component can be deleted, and its objects stay"
	}
	if slices.ContainsFunc(t.secrets, func(s corev1.Secret) bool { return s.Labels[ownerLabel] != to }) {
		g.moving.Add(owner.GetUID(), nil)
		return nil
	}
	if _, moved := g.moving.Get(owner.GetUID()); !moved {
		return nil
	}
	g.moving.Remove(owner.GetUID())
	return component.RecordEvent(ctx, reason, fmt.Sprintf(note, t.last.Version, t.namespace, t.name))
}
