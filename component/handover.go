package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/component/internal/engine"
	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/internal/cached"
)

// claims returns which other components of the namespace have recorded dependents of this one, by key. If
// there are several, it is the oldest. It does not trust the cache: what counts is what the API server has
// when it is asked. The cache only spares reading components that it has as they are there.
func (p *pass[T]) claims(ctx context.Context, keys []string) (map[string]engine.Claim, error) {
	own := p.obj.GetStatus().Cluster
	if own == target.Unknown {
		return nil, nil
	}
	others, err := p.siblings(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(others, func(a, b metav1.PartialObjectMetadata) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	claims := map[string]engine.Claim{}
	for i := range others {
		other, found, err := p.sibling(ctx, &others[i])
		if err != nil {
			return nil, err
		}
		if !found || other.GetDeletionTimestamp() != nil || other.GetStatus().Cluster != own {
			continue
		}
		items, err := p.itemsOf(ctx, other)
		if _, unreadable := errors.AsType[*api.InventoryError](err); unreadable {
			return nil, fmt.Errorf("component %s may have taken over what is to be deleted, but its inventory cannot be read; see its status",
				client.ObjectKeyFromObject(other))
		}
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			_, first := claims[item.Key()]
			if first = !first; first && p.claimed(item) && slices.Contains(keys, item.Key()) {
				claims[item.Key()] = engine.Claim{Owner: p.clusterID + "/" + client.ObjectKeyFromObject(other).String(), UID: string(other.GetUID())}
			}
		}
	}
	return claims, nil
}

// claimed reports whether a component wants to have what it has recorded.
func (p *pass[T]) claimed(item api.InventoryItem) bool {
	switch item.Phase {
	case api.PhaseScheduledForDeletion, api.PhaseDeleting:
		return false
	default:
		return cmp.Or(item.AdoptionPolicy, p.options.policies().AdoptionPolicy) != api.AdoptionPolicyNever
	}
}

// siblings asks the API server for the other components of the namespace. It gets their metadata.
func (p *pass[T]) siblings(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	kind, err := apiutil.GVKForObject(p.obj, p.run.Client().Scheme())
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := p.run.Live().List(ctx, list, client.InNamespace(p.obj.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list the components of the namespace: %w", err)
	}
	self := func(o metav1.PartialObjectMetadata) bool { return o.UID == p.obj.GetUID() }
	return slices.DeleteFunc(list.Items, self), nil
}

// sibling returns a component as the API server has it.
func (p *pass[T]) sibling(ctx context.Context, is *metav1.PartialObjectMetadata) (obj T, found bool, err error) {
	key := types.NamespacedName{Namespace: is.Namespace, Name: is.Name}
	obj = cached.New[T]()
	err = p.run.Client().Get(ctx, key, obj)
	if err == nil && obj.GetUID() == is.UID && obj.GetResourceVersion() == is.ResourceVersion {
		return obj, true, nil
	}
	obj = cached.New[T]()
	if err = p.run.Live().Get(ctx, key, obj); apierrors.IsNotFound(err) {
		return obj, false, nil
	}
	return obj, err == nil, err
}
