package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/kubesim/fault"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

// Folder returns the scenarios of the folder sample. crds is its folder of CRDs, and every
// disk is a folder within dir.
func Folder(crds fs.FS, dir string) []fault.Scenario {
	f := &v1.Folder{ObjectMeta: named("orders", nil)}
	readOnly := fault.Merge(f, `{"spec":{"readOnly":true}}`)
	life := []fault.Step{
		fault.Create(f).Becomes(f, api.ConditionReady),
		readOnly.Becomes(f, api.ConditionReady).Expecting(diskHas("orders dr-xr-xr-x")),
		noticed(fault.Change("somebody changes the mode", func(d *disk) error {
			return d.root.Chmod("orders", 0o777)
		})).Becomes(f, api.ConditionReady).Expecting(diskHas("orders dr-xr-xr-x")),
		noticed(fault.Change("somebody removes the folder", func(d *disk) error {
			return d.root.RemoveAll("orders")
		})).Becomes(f, api.ConditionReady).Expecting(diskHas("orders dr-xr-xr-x")),
		fault.Delete(f).Gone(f).Expecting(diskHas()),
	}
	occupied := []fault.Step{
		fault.Change("somebody makes the folder", func(d *disk) error { return d.root.Mkdir("orders", 0o700) }),
		fault.Create(f).Expecting(reason(f, "NotOurs")),
		fault.Delete(f).Gone(f).Expecting(diskHas("orders drwx------")),
	}
	return []fault.Scenario{
		folderScenario("folder-life", crds, dir, life), folderScenario("folder-occupied", crds, dir, occupied),
	}
}

func folderScenario(name string, crds fs.FS, dir string, steps []fault.Step) fault.Scenario {
	options := func(env *fault.Env) operator.Options {
		return operator.Options{
			Name: "folder", AddToScheme: v1.AddToScheme, CRDs: crds,
			Controllers: func() ([]operator.Controller, error) {
				return []operator.Controller{external.New(disturbed{env: env}, external.Options[*v1.Folder, *os.Root]{
					Connect:  func(context.Context) (*os.Root, error) { env.Author("Connect"); return nil, nil }, // each call has its disk
					Unmarked: true, CreateGrace: -1,
				})}, nil
			},
		}
	}
	return fault.Scenario{
		Name: name, Operator: simulated(options),
		ExternalAPI: func() fault.ExternalAPI { return newDisk(dir) },
		Steps:       steps, Patience: 5 * time.Minute, Reads: 7,
	}
}

// disk is a folder of the real disk. What its entries' owners are it has to be told.
type disk struct {
	dir, path string
	root      *os.Root

	mu     sync.Mutex
	owners map[string]string
}

var _ fault.Cloner = (*disk)(nil)

// newDisk makes an empty disk. It panics if it cannot, as an [fault.Scenario] wants no error.
func newDisk(dir string) *disk {
	path, err := os.MkdirTemp(dir, "disk-")
	if err != nil {
		panic(err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		panic(err)
	}
	return &disk{dir: dir, path: path, root: root, owners: map[string]string{}}
}

// Resources are the folders.
func (d *disk) Resources() []fault.Resource {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []fault.Resource
	for name, mode := range d.entries() {
		all = append(all, fault.Resource{Kind: "folder", ID: name, Owner: d.owners[name], State: mode.String(), Ready: true})
	}
	return all
}

// Clone copies the folders, which are empty.
func (d *disk) Clone() fault.ExternalAPI {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newDisk(d.dir)
	for name, mode := range d.entries() {
		if err := errors.Join(c.root.Mkdir(name, 0o700), c.root.Chmod(name, mode.Perm())); err != nil {
			panic(err)
		}
		if owner, ok := d.owners[name]; ok {
			c.owners[name] = owner
		}
	}
	return c
}

func (d *disk) entries() map[string]fs.FileMode {
	all := map[string]fs.FileMode{}
	list, err := os.ReadDir(d.path)
	if err != nil {
		panic(err)
	}
	for _, e := range list {
		if info, err := os.Lstat(filepath.Join(d.path, e.Name())); err == nil {
			all[e.Name()] = info.Mode()
		}
	}
	return all
}

// owned notes whose a folder is that was just made, or removed.
func (d *disk) owned(name, owner string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owners[name] = owner; owner == "" {
		delete(d.owners, name)
	}
}

// diskHas expects these folders, each with its mode, and no others.
func diskHas(want ...string) func(context.Context, *fault.World) error {
	return func(_ context.Context, w *fault.World) error {
		var got []string
		for _, t := range w.ExternalAPI.Resources() {
			got = append(got, t.ID+" "+t.State)
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			return fmt.Errorf("there is %q on the disk; want %q", got, want)
		}
		return nil
	}
}

// disturbed is the sample's driver, whose calls come to the disk of the sandbox by way of the
// explorer. A disk loses no answers, refuses nothing for a while and shows at once what was
// done, so only crashes and panics are let through.
type disturbed struct {
	folders
	env *fault.Env
}

// Observe looks at the disk.
func (d disturbed) Observe(ctx context.Context, r external.ObserveRequest[*v1.Folder, *os.Root]) (external.Observation[fs.FileMode], error) {
	d.env.Author("Observe")
	for {
		o, err := fault.Read(ctx, d.env, "stat "+r.ID, func(disk *disk) (external.Observation[fs.FileMode], error) {
			r.Client = disk.root
			return d.folders.Observe(ctx, r)
		})
		if !fromExplorer(err) {
			return o, err
		}
	}
}

// Create makes a folder.
func (d disturbed) Create(ctx context.Context, r external.CreateRequest[*v1.Folder, *os.Root]) (external.CreateResponse[fs.FileMode], error) {
	d.env.Author("Create")
	defer d.env.Author("after Create")
	return write(ctx, d.env, "mkdir "+r.ID, func(disk *disk) (external.CreateResponse[fs.FileMode], error) {
		r.Client = disk.root
		response, err := d.folders.Create(ctx, r)
		if err == nil {
			disk.owned(r.ID, string(r.Object.UID))
		}
		return response, err
	})
}

// Update changes a folder's mode.
func (d disturbed) Update(ctx context.Context, r external.UpdateRequest[*v1.Folder, *os.Root, fs.FileMode]) (external.UpdateResponse[fs.FileMode], error) {
	d.env.Author("Update")
	defer d.env.Author("after Update")
	return write(ctx, d.env, "chmod "+r.ID, func(disk *disk) (external.UpdateResponse[fs.FileMode], error) {
		r.Client = disk.root
		return d.folders.Update(ctx, r)
	})
}

// Delete removes a folder.
func (d disturbed) Delete(ctx context.Context, r external.DeleteRequest[*v1.Folder, *os.Root]) (external.DeleteResponse, error) {
	d.env.Author("Delete")
	defer d.env.Author("after Delete")
	return write(ctx, d.env, "remove "+r.ID, func(disk *disk) (external.DeleteResponse, error) {
		r.Client = disk.root
		response, err := d.folders.Delete(ctx, r)
		if err == nil {
			disk.owned(r.ID, "")
		}
		return response, err
	})
}

// ExternalName names the folder.
func (d disturbed) ExternalName(f *v1.Folder) (string, error) {
	d.env.Author("ExternalName")
	return d.folders.ExternalName(f)
}

// Compare compares the mode.
func (d disturbed) Compare(r external.CompareRequest[*v1.Folder, fs.FileMode]) external.Changes {
	d.env.Author("Compare")
	return d.folders.Compare(r)
}

// write makes a call that is answered truly once it was made, and is made until then, or until the caller's time is over.
func write[R any](ctx context.Context, env *fault.Env, what string, do func(*disk) (R, error)) (response R, err error) {
	for made := false; ; {
		_, called := fault.Write(ctx, env, what, func(d *disk) (R, error) {
			made = true
			response, err = do(d)
			return response, err
		})
		switch {
		case made:
			return response, err
		case errors.Is(called, fault.ErrDead), ctx.Err() != nil:
			return response, called
		}
	}
}

func fromExplorer(err error) bool {
	return errors.Is(err, fault.ErrNoAnswer) || errors.Is(err, fault.ErrThrottled) || errors.Is(err, fault.ErrUnavailable)
}
