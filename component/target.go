package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component/internal/target"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/loop"
)

// KubeconfigOptions say what the kubeconfigs of components may contain. Users write them, and the operator
// acts on them with its own network, files and programs. The zero value accepts credentials that are in
// the kubeconfig itself, and servers whose certificate can be verified.
type KubeconfigOptions struct {
	// AllowExec accepts exec and auth-provider, which run programs in the operator's container.
	AllowExec bool
	// AllowFiles accepts names of files in the operator's container: tokenFile, client-certificate,
	// client-key and certificate-authority.
	AllowFiles bool
	// AllowInsecure accepts insecure-skip-tls-verify and servers with http.
	AllowInsecure bool
	// KeepForDeletion deletes the dependents of a component with the kubeconfig that this process used
	// last if its Secret is gone, as it is when a namespace is deleted. Kubeconfigs are kept in memory only.
	// Otherwise the Secret gets a finalizer, for which the operator needs the permission to patch Secrets,
	// and stays until the components that refer to it are gone.
	KeepForDeletion bool
}

func (o KubeconfigOptions) allow() target.Allow {
	return target.Allow{Exec: o.AllowExec, Files: o.AllowFiles, Insecure: o.AllowInsecure}
}

// unreachableInterval is how often a component is looked at whose cluster does not answer. It is
// reconciled at once when the cluster answers again.
const unreachableInterval = 5 * time.Second

// placement is where the dependents of a component are in one pass.
type placement struct {
	target *target.Target
	// digest identifies what says where they are; empty means the manager's own cluster and user.
	digest string

	raw    []byte // the kubeconfig as it is without its references
	user   string
	groups []string
}

// placement returns what the component says before its references are loaded.
func (p *pass[T]) placement() placement {
	var out placement
	if c, ok := configured[ClientConfiguration](p.obj); ok {
		out.raw = slices.Clone(c.GetKubeConfig())
	}
	if i, ok := configured[ImpersonationConfiguration](p.obj); ok {
		out.user = strings.ReplaceAll(i.GetImpersonationUser(), "${namespace}", p.obj.GetNamespace())
		out.groups = i.GetImpersonationGroups()
	}
	return out
}

// join finds the target of the component. It reads nothing unless what says where it is has changed.
func (p *pass[T]) join(ctx context.Context) error {
	if _, ok := configured[ClientConfiguration](p.obj); !ok && p.place.user == "" && len(p.place.groups) == 0 {
		return p.enter(ctx, target.Identity{})
	}
	digest, err := p.placeDigest()
	if err != nil {
		return err
	}
	if p.place.digest = digest; p.placements.known(p.obj.GetUID()) == digest {
		if last := p.targets.Last(p.obj.GetUID()); last != nil {
			return p.use(ctx, last)
		}
	}
	kubeconfig := p.place.raw
	if _, ok := configured[ClientConfiguration](p.obj); ok {
		copied, _ := p.obj.DeepCopyObject().(T)
		if err := p.refs.loadAll(ctx, copied); err != nil {
			return err
		}
		c, _ := configured[ClientConfiguration](copied)
		kubeconfig = c.GetKubeConfig()
	}
	return p.enter(ctx, target.Identity{Kubeconfig: kubeconfig, User: p.place.user, Groups: p.place.groups})
}

// placeDigest identifies what says where the dependents are.
func (p *pass[T]) placeDigest() (string, error) {
	text, err := json.Marshal([]any{p.place.raw, p.place.user, p.place.groups, p.refs.digest, p.obj.GetGeneration()})
	if err != nil {
		return "", fmt.Errorf("encode where the dependents are: %w", err)
	}
	return hashOf(text), nil
}

// enter joins the target of an identity.
func (p *pass[T]) enter(ctx context.Context, id target.Identity) error {
	if loop.IsDryRun(ctx) && len(id.Kubeconfig) > 0 { // only the writes to the operator's own cluster are dry runs
		return errors.New("the dependents are in the cluster of a kubeconfig, which a dry run does not reach")
	}
	t, err := p.targets.Join(ctx, p.obj.GetUID(), client.ObjectKeyFromObject(p.obj), id)
	if err != nil {
		return err
	}
	p.placements.remember(p.obj.GetUID(), p.place.digest)
	return p.use(ctx, t)
}

// use has the pass work on a target, which must answer.
func (p *pass[T]) use(ctx context.Context, t *target.Target) error {
	p.place.target = t
	if p.context.target = t.Direct; t.Local() {
		p.context.target = p.run.Client()
	}
	if err := t.Check(ctx); err != nil {
		return err
	}
	return p.settle(ctx, t)
}

// rejoin is join for a component that is being deleted. References that have nothing to do with the target
// may be missing. It returns what the deletion waits for.
func (p *pass[T]) rejoin(ctx context.Context) (blocked string, err error) {
	if p.place = p.placement(); p.place.raw == nil {
		return "", p.enter(ctx, p.identity(nil))
	}
	refs := &resolving{references: &p.references, obj: p.obj, live: p.run.Live(), content: map[string]content{}}
	copied, _ := p.obj.DeepCopyObject().(T)
	var missing []string
	for _, ref := range p.references.of(copied, true) {
		switch _, why, err := refs.load(ctx, ref); {
		case err != nil:
			return "", err
		case why != "":
			missing = append(missing, fmt.Sprintf("%s %s/%s: it %s", ref.kind, p.obj.GetNamespace(), ref.name, why))
		}
	}
	c, _ := configured[ClientConfiguration](copied)
	kubeconfig := c.GetKubeConfig()
	if len(kubeconfig) > 0 || len(missing) == 0 {
		return "", p.enter(ctx, p.identity(kubeconfig))
	}
	if last := p.targets.Last(p.obj.GetUID()); last != nil && p.options.Kubeconfigs.KeepForDeletion {
		return "", p.use(ctx, last)
	}
	return "the kubeconfig for the cluster of the dependents is missing; waiting for " + strings.Join(missing, ", "), nil
}

// lost notes that nothing is known of the dependents of a component whose cluster does not answer.
func (p *pass[T]) lost(err error) error {
	unreachable, ok := errors.AsType[*target.UnreachableError](err)
	if !ok {
		return err
	}
	status := p.obj.GetStatus()
	status.Inventory = slices.Clone(status.Inventory)
	for i := range status.Inventory {
		status.Inventory[i].Status = string(health.Unknown)
	}
	return NewRetriableError(unreachable, new(unreachableInterval))
}

// impersonationNeeds are the permissions to act as the service accounts of components.
func impersonationNeeds[T Object]() []loop.Need {
	obj, ok := reflect.TypeAssert[T](reflect.New(reflect.TypeFor[T]().Elem()))
	if !ok {
		return nil
	}
	if _, ok := configured[ImpersonationConfiguration](obj); !ok {
		return nil
	}
	return []loop.Need{{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Verbs: []string{"impersonate"}, ClusterWide: true,
	}}
}

// placements remember where components were last, as digests.
type placements struct {
	mu    sync.Mutex
	where map[types.UID]string
	// itself has the components whose dependents are deleted without impersonation.
	itself map[types.UID]bool
}

func (p *placements) known(uid types.UID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where[uid]
}

func (p *placements) remember(uid types.UID, digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.where == nil {
		p.where = map[types.UID]string{}
	}
	p.where[uid] = digest
}

func (p *placements) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.where, uid)
	delete(p.itself, uid)
}
