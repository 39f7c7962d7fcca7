package component

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trimtab-dev/trimtab/internal/cached"
	"github.com/trimtab-dev/trimtab/loop"
)

// holds keep the Secrets with the kubeconfigs of components as long as these need them, by a finalizer: whoever
// deletes a namespace deletes its Secrets, too. Which components need a Secret is read from the cache each time.
type holds struct {
	// finalizer is empty if components of the kind have no kubeconfig in a Secret. Other kinds of the same
	// operator have their own, so that each kind only needs to know its own components.
	finalizer string
	cache     client.Reader
	client    client.Client

	// mu also makes sure that of two components that leave a Secret at the same time the second sees the
	// first.
	mu sync.Mutex
	// tried are the Secrets that were given the finalizer, or that could not be, as the cache had them then.
	tried map[types.UID]string
	// swept are the components after whose last change the Secrets of the namespace were checked. Their
	// dependents are where the component says, so that it needs no other Secrets than it names.
	swept map[types.UID]int64
	// leaving are components that are gone but for their own finalizer, and since when.
	leaving map[types.UID]time.Time
}

// kubeconfigHolds reports whether components of a kind can have kubeconfigs in Secrets.
func kubeconfigHolds[T Object](r *referring) bool {
	_, ok := configured[ClientConfiguration](cached.New[T]())
	return ok && slices.Contains(r.kinds, "Secret")
}

// holdNeeds are the permissions to hold Secrets.
func holdNeeds[T Object](r *referring, o KubeconfigOptions) []loop.Need {
	if o.KeepForDeletion || !kubeconfigHolds[T](r) {
		return nil
	}
	return []loop.Need{{GroupVersionKind: kindOfReference("Secret"), Verbs: []string{"patch"}}}
}

// setupHolds prepares the holds, and has those removed that were left while no operator ran.
func (w *worker[T]) setupHolds(mgr manager.Manager) error {
	if !kubeconfigHolds[T](w.references.referring) {
		return nil
	}
	kind, err := apiutil.GVKForObject(cached.New[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	h := &w.holds
	h.finalizer = w.options.Name + "/in-use-by-" + strings.ToLower(kind.Kind)
	h.cache, h.client = mgr.GetCache(), mgr.GetClient()
	h.tried, h.swept, h.leaving = map[types.UID]string{}, map[types.UID]int64{}, map[types.UID]time.Time{}
	return mgr.Add(driverRunner(func(ctx context.Context) {
		if err := w.sweep(ctx, ""); err != nil {
			mgr.GetLogger().Error(err, "cannot release Secrets that no component needs")
		}
	}))
}

// kubeconfigSecrets are the names of the Secrets that are held for a component, whose references are not loaded.
// A component with a way of its own to name the kubeconfig has all its Secrets held.
func (w *worker[T]) kubeconfigSecrets(obj T) []string {
	c, ok := configured[ClientConfiguration](obj)
	if !ok || w.holds.finalizer == "" || w.options.Kubeconfigs.KeepForDeletion {
		return nil
	}
	if raw := c.GetKubeConfig(); raw == nil || len(raw) > 0 { // the own cluster, or not in a Secret
		return nil
	}
	var certain, possible []string
	for _, ref := range w.references.of(obj, false) {
		switch {
		case ref.kind != "Secret":
		case ref.kubeconfig:
			certain = append(certain, ref.name)
		default:
			possible = append(possible, ref.name)
		}
	}
	if len(certain) > 0 {
		return certain
	}
	return possible
}

// hold makes sure that the Secret with the kubeconfig stays until the dependents are gone.
func (p *pass[T]) hold(ctx context.Context) error {
	if p.holds.finalizer == "" {
		return nil
	}
	for _, name := range p.secrets {
		secret := metadataOf("Secret")
		if err := p.holds.cache.Get(ctx, client.ObjectKey{Namespace: p.obj.GetNamespace(), Name: name}, secret); err != nil {
			return fmt.Errorf("find Secret %s/%s: %w", p.obj.GetNamespace(), name, err)
		}
		if err := p.holdOne(ctx, secret); err != nil {
			return err
		}
	}
	if p.holds.unswept(p.obj.GetUID(), p.obj.GetGeneration()) {
		return p.sweep(ctx, p.obj.GetNamespace())
	}
	return nil
}

func (p *pass[T]) holdOne(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	name := secret.Namespace + "/" + secret.Name
	held := slices.Contains(secret.Finalizers, p.holds.finalizer)
	switch {
	case secret.DeletionTimestamp == nil && held:
		return nil
	case held:
		p.warn("KubeconfigDeleted", []string{"Secret " + name + " is being deleted; it stays until no component refers to it"})
		return nil
	case secret.DeletionTimestamp != nil && len(p.obj.GetStatus().Inventory) == 0:
		return NewRetriableError(fmt.Errorf("the Secret %s is being deleted; nothing is created with its kubeconfig", name), nil)
	case secret.DeletionTimestamp != nil, !p.holds.first(secret):
		return nil
	}
	err := p.holds.patch(ctx, secret, map[string]any{"finalizers": []string{p.holds.finalizer}})
	switch {
	case apierrors.IsForbidden(err):
		p.warn("KubeconfigUnprotected", []string{fmt.Sprintf("Secret %s can be deleted before the dependents are, which are left behind then: "+
			"the operator may not patch it; allow that, or set Kubeconfigs.KeepForDeletion of the operator", name)})
		return nil
	case err != nil:
		p.holds.again(secret.UID)
		return fmt.Errorf("add a finalizer to Secret %s: %w", name, err)
	}
	return nil
}

// patch changes metadata of a Secret, and of no other with its name. It cannot conflict with other changes.
func (h *holds) patch(ctx context.Context, secret *metav1.PartialObjectMetadata, metadata map[string]any) error {
	metadata["uid"] = secret.UID
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return h.client.Patch(ctx, secret.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, body))
}

// first reports whether nobody has tried to hold a Secret as it is in the cache.
func (h *holds) first(secret *metav1.PartialObjectMetadata) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tried[secret.UID] == secret.ResourceVersion {
		return false
	}
	h.tried[secret.UID] = secret.ResourceVersion
	return true
}

func (h *holds) again(secret types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.tried, secret)
}

// unswept reports whether a component has changed since it was asked last.
func (h *holds) unswept(component types.UID, generation int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.swept[component] == generation {
		return false
	}
	h.swept[component] = generation
	return true
}

func (h *holds) forget(component types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.swept, component)
}

// sweep releases the Secrets in a namespace, or in all, that no component needs any more.
func (w *worker[T]) sweep(ctx context.Context, namespace string) error {
	secrets, err := w.held(ctx, namespace)
	if err != nil {
		return err
	}
	w.holds.mu.Lock()
	defer w.holds.mu.Unlock()
	return w.release(ctx, namespace, secrets)
}

// held are the Secrets in a namespace, or in all, that are held according to the cache.
func (w *worker[T]) held(ctx context.Context, namespace string) (held []metav1.PartialObjectMetadata, err error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := w.holds.cache.List(ctx, all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Secrets that are held: %w", err)
	}
	for i := range all.Items {
		if slices.Contains(all.Items[i].Finalizers, w.holds.finalizer) {
			held = append(held, *all.Items[i].DeepCopy())
		}
	}
	return held, nil
}

// leave releases the Secrets and ConfigMaps of a component whose dependents are gone. Its Secrets are read from the
// API server: the cache may not have the finalizer yet.
func (p *pass[T]) leave(ctx context.Context) error {
	if p.inventories.Has(p.obj.GetUID()) {
		if err := p.inventories.Release(ctx, p.owner()); err != nil {
			return err
		}
	}
	if p.holds.finalizer == "" {
		return nil
	}
	secrets, err := p.held(ctx, p.obj.GetNamespace()) // also those that it named before
	if err != nil {
		return err
	}
	own := p.ownSecrets()
	secrets = slices.DeleteFunc(secrets, func(s metav1.PartialObjectMetadata) bool { return slices.Contains(own, s.Name) })
	for _, name := range own {
		secret := metadataOf("Secret")
		err := p.run.Live().Get(ctx, client.ObjectKey{Namespace: p.obj.GetNamespace(), Name: name}, secret)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("find Secret %s/%s: %w", p.obj.GetNamespace(), name, err)
		}
		if err == nil {
			secrets = append(secrets, *secret)
		}
	}
	p.holds.mu.Lock()
	defer p.holds.mu.Unlock()
	for uid, since := range p.holds.leaving {
		if p.now.Sub(since) > time.Hour { // if it is still there, it comes here again
			delete(p.holds.leaving, uid)
		}
	}
	p.holds.leaving[p.obj.GetUID()] = p.now
	return p.release(ctx, p.obj.GetNamespace(), secrets)
}

// ownSecrets are the names of the Secrets that the component names, or by which its dependents were applied.
func (p *pass[T]) ownSecrets() []string {
	all := slices.Concat(p.secrets, p.obj.GetStatus().KubeconfigSecrets)
	slices.Sort(all)
	return slices.Compact(all)
}

// release removes the finalizer of those Secrets that no component needs. The caller holds the lock.
func (w *worker[T]) release(ctx context.Context, namespace string, secrets []metav1.PartialObjectMetadata) error {
	h := &w.holds
	secrets = slices.DeleteFunc(slices.Clone(secrets), func(s metav1.PartialObjectMetadata) bool {
		return !slices.Contains(s.Finalizers, h.finalizer)
	})
	if len(secrets) == 0 {
		return nil
	}
	needed, err := w.needed(ctx, namespace)
	if err != nil {
		return err
	}
	for i := range secrets {
		s := &secrets[i]
		if needed[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] {
			continue
		}
		s.SetGroupVersionKind(kindOfReference("Secret"))
		delete(h.tried, s.UID)
		err := h.patch(ctx, s, map[string]any{"$deleteFromPrimitiveList/finalizers": []string{h.finalizer}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // it is gone
			return fmt.Errorf("remove the finalizer %s of Secret %s/%s, which nothing needs any more: %w", h.finalizer, s.Namespace, s.Name, err)
		}
	}
	return nil
}

// needed are the Secrets that components need. The caller holds the lock.
func (w *worker[T]) needed(ctx context.Context, namespace string) (map[types.NamespacedName]bool, error) {
	components, err := cached.Objects[T]{Scheme: w.holds.client.Scheme(), Reader: w.holds.cache}.In(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("list the components: %w", err)
	}
	needed := map[types.NamespacedName]bool{}
	for _, obj := range components {
		if _, leaving := w.holds.leaving[obj.GetUID()]; leaving {
			continue
		}
		names := w.kubeconfigSecrets(obj)
		if w.holds.swept[obj.GetUID()] != obj.GetGeneration() {
			names = append(names, obj.GetStatus().KubeconfigSecrets...)
		}
		for _, name := range names {
			needed[types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}] = true
		}
	}
	return needed, nil
}

// allGone is what the status has for the digest of manifests when all dependents of a component that is being
// deleted are gone. It is written before the Secret and the ConfigMaps are released: without it, a component whose
// Secret is gone would wait for the Secret, and one whose ConfigMaps are gone would look for its inventory.
const allGone = "deleted"

// listed is how often a component that is being deleted asks whether a cache has all ConfigMaps. That takes a
// second or more if the cache's first request fails.
const listed = 100 * time.Millisecond

// finish ends the deletion of a component whose dependents are gone.
func (p *pass[T]) finish(ctx context.Context, s *situation) error {
	if err := p.call(ctx, postDelete); err != nil {
		return err
	}
	if p.shards != nil && !p.run.Vanished() && !p.shards.Synced(p.obj.GetNamespace()) {
		s.Ready, s.Waiting, s.Again = false, "all dependents are gone; it is not known yet whether there are ConfigMaps with the inventory", listed
		return nil
	}
	var held []string
	if len(p.ownSecrets()) > 0 {
		held = append(held, "the Secret with the kubeconfig")
	}
	if p.inventories.Has(p.obj.GetUID()) {
		held = append(held, "the ConfigMaps with the inventory")
	}
	switch {
	case len(held) == 0:
		return nil
	case p.run.Vanished():
		return p.leave(ctx)
	}
	status := p.obj.GetStatus()
	status.Inventory, status.ProcessingDigest = nil, allGone
	s.Ready, s.Waiting, s.Again = false, "all dependents are gone; released next: "+strings.Join(held, ", "), soon
	return nil
}

// done reports whether an earlier pass of the deletion found all dependents gone.
func (p *pass[T]) done() bool {
	status := p.obj.GetStatus()
	return status.ProcessingDigest == allGone && len(status.Inventory) == 0
}
