package velero

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	plugin "github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/trimtab-dev/trimtab/kubesim/fault"
)

// bucket is an object store with one bucket.
type bucket struct {
	mu    sync.Mutex
	files map[string]string
}

// Resources lists the backups with their files. Each belongs to the Backup of its name.
func (b *bucket) Resources() (all []fault.Resource) {
	files := map[string]string{}
	for _, key := range b.with("backups/") {
		name, file, _ := strings.Cut(strings.TrimPrefix(key, "backups/"), "/")
		files[name] += file + " "
	}
	for name, state := range files {
		all = append(all, fault.Resource{Kind: "backup", ID: name, Owner: "default/" + name, State: state, Ready: true})
	}
	return all
}

func (b *bucket) Clone() fault.ExternalAPI {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &bucket{files: maps.Clone(b.files)}
}

// upload stores what Velero keeps of a backup.
func (b *bucket) upload(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files["backups/"+name+"/velero-backup.json"] = "metadata of " + name
	b.files["backups/"+name+"/"+name+".tar.gz"] = "contents of " + name
	return nil
}

func (b *bucket) with(prefix string) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.files)) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (b *bucket) has(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.files[key]
	return ok
}

func (b *bucket) remove(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.files, key)
}

// plugins are Velero's plugins: one for the object store, and none that acts when a backup is deleted.
type plugins struct {
	clientmgmt.Manager
	env *fault.Env
}

func (p plugins) GetObjectStore(string) (plugin.ObjectStore, error) { return store{env: p.env}, nil }

func (plugins) GetDeleteItemActions() ([]plugin.DeleteItemAction, error) { return nil, nil }

func (plugins) CleanupClients() {}

// store is the plugin for the bucket, with what is called here. Velero passes no context to plugins.
type store struct {
	plugin.ObjectStore
	env *fault.Env
}

func (store) Init(map[string]string) error { return nil }

func (s store) ObjectExists(_, key string) (bool, error) {
	return fault.Read(context.Background(), s.env, "find "+key, func(b *bucket) (bool, error) { return b.has(key), nil })
}

func (s store) ListObjects(_, prefix string) ([]string, error) {
	return fault.Read(context.Background(), s.env, "list "+prefix, func(b *bucket) ([]string, error) { return b.with(prefix), nil })
}

func (s store) DeleteObject(_, key string) error {
	_, err := fault.Write(context.Background(), s.env, "delete "+key, func(b *bucket) (struct{}, error) {
		b.remove(key)
		return struct{}{}, nil
	})
	return err
}

func (s store) CreateSignedURL(_, key string, _ time.Duration) (string, error) {
	return fault.Read(context.Background(), s.env, "sign "+key, func(*bucket) (string, error) { return "https://bucket/" + key, nil })
}
