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

func (folders) Observe(_ context.Context, r external.ObserveRequest[*v1.Folder, *os.Root]) (external.Observation[fs.FileMode], error) {
	info, err := r.Client.Stat(r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return external.Missing[fs.FileMode](), nil
	}
	if err != nil {
		return external.Observation[fs.FileMode]{}, err
	}
	return external.Available(info.Mode(), nil), nil
}

func (folders) Compare(r external.CompareRequest[*v1.Folder, fs.FileMode]) external.Changes {
	return external.Field("spec.readOnly", r.Object.Spec.ReadOnly, r.Have&0o222 == 0)
}

func (folders) Create(_ context.Context, r external.CreateRequest[*v1.Folder, *os.Root]) (external.CreateResponse[fs.FileMode], error) {
	err := r.Client.Mkdir(r.ID, 0o755)
	return external.CreateResponse[fs.FileMode]{}, external.Conflict(err) // an error means that nothing was made
}

func (folders) Update(_ context.Context, r external.UpdateRequest[*v1.Folder, *os.Root, fs.FileMode]) (external.UpdateResponse[fs.FileMode], error) {
	mode := map[bool]fs.FileMode{false: 0o755, true: 0o555}[r.Object.Spec.ReadOnly]
	return external.UpdateResponse[fs.FileMode]{}, r.Client.Chmod(r.ID, mode)
}

func (folders) Delete(_ context.Context, r external.DeleteRequest[*v1.Folder, *os.Root]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.RemoveAll(r.ID)
}

// endregion: driver
