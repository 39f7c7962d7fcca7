package inventory

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
)

// Limits say up to which size a form is used.
type Limits struct {
	// Readable is the number of items that are kept as they are. Zero means 500.
	Readable int
	// Inline is the number of bytes that a compact form may have in the status. Zero means 300 KiB; a
	// negative value means no limit.
	Inline int
	// Shard is about how many items a ConfigMap has. Zero means 5,000.
	Shard int
	// Grace is how long a process knows a ConfigMap that nobody names and that it did not write before it
	// deletes it. Zero means 5 minutes.
	Grace time.Duration
}

func (l Limits) readable() int { return cmp.Or(l.Readable, 500) }
func (l Limits) inline() int   { return cmp.Or(l.Inline, 300<<10) }
func (l Limits) shard() int    { return cmp.Or(l.Shard, 5000) }

func (l Limits) grace() time.Duration { return cmp.Or(l.Grace, 5*time.Minute) }

// Store loads and saves the inventories of the components of one operator.
type Store struct {
	Limits
	// Operator is its name, the prefix of the label of ConfigMaps.
	Operator string

	mu    sync.Mutex
	known map[types.UID]*known
	// noted is what a [Watch] has seen of the ConfigMaps of components since their last pass, by name. dropped are
	// those that this process deletes, of which it needs no news; nil without a [Watch].
	noted   map[types.UID]map[string]shard
	dropped map[types.UID]bool
}

// known is what is known of the inventory of a component.
type known struct {
	// compact and shards are the form that was read or written last, and items what it says. They are
	// zero if it is readable.
	compact string
	shards  []string
	items   []api.InventoryItem
	// existing are the ConfigMaps that the component has, as a list or a create showed them. listed: they are
	// all that there were.
	listed   bool
	existing map[string]shard
	// sealed: the namespace takes no more ConfigMaps.
	sealed bool
	// restored says which ConfigMaps were written again because they were deleted, a sentence each.
	restored []string
	// pause is until when nothing is deleted, because that has failed.
	pause time.Time
}

// Owner is the component that a call is about.
type Owner struct {
	client.Object

	Status *api.ComponentStatus
	// Live reads from the API server, and Client writes.
	Live   client.Reader
	Client client.Client
	// Log gets the errors of what is tried again later.
	Log logr.Logger
}

// componentObject is a component.
type componentObject interface {
	client.Object
	api.ComponentObject
}

// of returns what is known of a component.
func (s *Store) of(uid types.UID) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[types.UID]*known{}
	}
	k := s.known[uid]
	if k == nil {
		k = &known{existing: map[string]shard{}}
		s.known[uid] = k
	}
	return k
}

// Forget drops what is known of a component that is gone.
func (s *Store) Forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, uid)
	delete(s.noted, uid)
}

// Items returns the items of a status, which may be that of any component.
func (s *Store) Items(ctx context.Context, o Owner) ([]api.InventoryItem, error) {
	return o.Status.Items(func(name string) ([]byte, error) {
		data, _, err := s.read(ctx, o, name)
		return data, err
	})
}

// Form is how an inventory is written in a status.
type Form struct {
	items   []api.InventoryItem
	compact string
	shards  []string
}

// FormOf returns the form that a status has.
func FormOf(s *api.ComponentStatus) Form {
	return Form{items: s.Inventory, compact: s.CompactInventory, shards: s.InventoryShards}
}

// Restore gives a status this form.
func (f Form) Restore(s *api.ComponentStatus) {
	s.Inventory, s.CompactInventory, s.InventoryShards = f.items, f.compact, f.shards
}

// Load makes the inventory of a component readable, in the memory of the process alone. [Store.Save] is its
// counterpart. Nothing is read and decoded that the process knows. ConfigMaps that are no longer needed are
// deleted; what fails at that is logged, and tried again later.
func (s *Store) Load(ctx context.Context, o Owner) error {
	compact, shards := o.Status.CompactInventory, o.Status.InventoryShards
	k, news := s.peek(o.GetUID()), s.news(o.GetUID())
	if k == nil && compact == "" && len(shards) == 0 && len(news) == 0 {
		return nil
	}
	k = s.of(o.GetUID())
	k.learn(news, shards)
	used := shards
	if compact != "" || len(o.Status.Inventory) > 0 { // the ConfigMaps are left over from an earlier form
		used = nil
		k.mention(shards)
	}
	items := o.Status.Inventory
	if compact == "" && len(used) == 0 {
		k.compact, k.shards, k.items = "", nil, nil
	} else {
		if k.items == nil || k.compact != compact || !slices.Equal(k.shards, used) {
			read, err := s.again(ctx, o, k)
			if err != nil {
				k.mention(used)
				return err
			}
			k.compact, k.shards, k.items = compact, used, read
		}
		items = k.items
	}
	Form{items: items}.Restore(o.Status)
	s.tidy(ctx, o, k, shards)
	return nil
}

// Save chooses the form in which the inventory of a component is written. ConfigMaps are written first, and those
// that are left over are named until they are gone. If something fails, the status gets the form that it had
// before.
func (s *Store) Save(ctx context.Context, o Owner, before Form) error {
	items := o.Status.Inventory
	k := s.peek(o.GetUID())
	if k == nil && len(items) <= s.readable() {
		return nil
	}
	k = s.of(o.GetUID())
	next, err := s.form(ctx, o, k, items)
	if err != nil {
		before.Restore(o.Status)
		return err
	}
	k.compact, k.shards, k.items = next.compact, next.shards, items
	if next.items != nil || len(items) == 0 {
		k.items = nil
	}
	if left := k.left(); len(next.shards) == 0 && len(left) > 0 {
		if next.shards = left; len(items) == 0 { // or else they would be the inventory
			data, err := api.EncodeInventory(nil)
			if err != nil {
				before.Restore(o.Status)
				return err
			}
			next.compact = base64.StdEncoding.EncodeToString(data)
		}
	}
	next.Restore(o.Status)
	return nil
}

// mention notes the names of ConfigMaps of which nothing else is known.
func (k *known) mention(names []string) {
	for _, name := range names {
		if _, known := k.existing[name]; !known {
			k.existing[name] = shard{}
		}
	}
}

// left are the names of the ConfigMaps that exist.
func (k *known) left() []string {
	maps.DeleteFunc(k.existing, func(name string, m shard) bool { return m.gone && !slices.Contains(k.shards, name) })
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.existing)), func(name string) bool { return k.existing[name].gone })
}

// form returns the form in which items are written, and writes ConfigMaps.
func (s *Store) form(ctx context.Context, o Owner, k *known, items []api.InventoryItem) (Form, error) {
	switch {
	case len(items) <= s.readable():
		return Form{items: items}, nil
	case same(items, k.items) && len(k.damaged()) == 0:
		return Form{compact: k.compact, shards: k.shards}, nil
	}
	data, err := api.EncodeInventory(items)
	if err != nil {
		return Form{}, err
	}
	text := base64.StdEncoding.EncodeToString(data)
	if limit := s.inline(); limit < 0 || len(text) <= limit || o.GetNamespace() == "" {
		return Form{compact: text}, nil
	}
	names, err := s.write(ctx, o, k, items)
	if !k.sealed && refusesNew(err, o) { // what is being deleted will do, unless it is not the inventory any more
		k.sealed = true
		names, err = s.write(ctx, o, k, items)
	}
	switch {
	case !refusesNew(err, o):
		return Form{shards: names}, err
	case len(text) <= mostInStatus:
		return Form{compact: text}, nil
	case o.GetDeletionTimestamp() == nil: // what is to be created is recorded first
		return Form{}, err
	default: // they stay until they are released, and may list more than there is by now: that is found to be gone
		return Form{compact: k.compact, shards: k.shards}, nil
	}
}

// mostInStatus is how many bytes of an inventory a status can have at most: a component is stored in 1.5 MiB.
const mostInStatus = 1 << 20

// errSealed is why no ConfigMap is created.
var errSealed = errors.New("the namespace takes no more ConfigMaps")

// refusesNew reports whether a ConfigMap was refused because its namespace is being deleted, or that of a
// component that is being deleted for whichever reason. Its inventory only shrinks from now on.
func refusesNew(err error, o Owner) bool {
	return errors.Is(err, errSealed) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsForbidden(err) && o.GetDeletionTimestamp() != nil
}

// peek returns what is known of a component, or nil.
func (s *Store) peek(uid types.UID) *known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[uid]
}

// Obsolete reports whether a component has ConfigMaps that are not needed once its status is written.
func (s *Store) Obsolete(component types.UID) bool {
	k := s.peek(component)
	return k != nil && len(s.obsolete(k)) > 0
}

// obsolete are the ConfigMaps that are not used and may be deleted now. Those of another process are spared for
// a while: if it is the leader now, it may be about to name them.
func (s *Store) obsolete(k *known) []string {
	now := time.Now()
	if now.Before(k.pause) {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.existing)), func(name string) bool {
		m := k.existing[name]
		return m.gone || slices.Contains(k.shards, name) || !m.seen.IsZero() && now.Sub(m.seen) < s.grace()
	})
}

// same reports whether two lists are one.
func same(a, b []api.InventoryItem) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}
