package scenarios

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/trimtab-dev/trimtab/external"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

// The driver of samples/folder, word for word: a command cannot be imported. That it is the
// same is a test.

// region: driver

// folders says what a Folder means on disk. Its client is the folder that all are in.
type folders struct{}

func (folders) ExternalName(f *v1.Folder) (string, error) { return f.Name, nil }

func (folders) Observe(_ context.Context, disk *os.Root, _ *v1.Folder, ref external.Ref) (external.Observation[fs.FileMode], error) {
	info, err := disk.Stat(ref.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return external.Missing[fs.FileMode](), nil
	}
	if err != nil {
		return external.Observation[fs.FileMode]{}, err
	}
	return external.Available(info.Mode(), nil), nil
}

func (folders) Compare(f *v1.Folder, have fs.FileMode) external.Changes {
	return external.Field("spec.readOnly", f.Spec.ReadOnly, have&0o222 == 0)
}

func (folders) Create(_ context.Context, disk *os.Root, _ *v1.Folder, in external.CreateInput) (external.Result, error) {
	return external.Result{}, external.Conflict(disk.Mkdir(in.Name, 0o755)) // an error means that nothing was made
}

func (folders) Update(_ context.Context, disk *os.Root, f *v1.Folder, ref external.Ref, _ fs.FileMode, _ external.Changes) (external.Result, error) {
	return external.Result{}, disk.Chmod(ref.ID, map[bool]fs.FileMode{false: 0o755, true: 0o555}[f.Spec.ReadOnly])
}

func (folders) Delete(_ context.Context, disk *os.Root, _ *v1.Folder, ref external.Ref) (external.Result, error) {
	return external.Result{}, disk.RemoveAll(ref.ID)
}

// endregion: driver
