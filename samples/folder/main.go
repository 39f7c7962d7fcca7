// Command folder is a small but complete operator: each Folder object stands for a folder on
// the operator's own disk.
package main

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/operator"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

// region: operator

// folders is the driver of the kind Folder. Its client is the directory that contains the folders.
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
	return external.CreateResponse[fs.FileMode]{}, external.Conflict(err) // after an error, nothing was created
}

func (folders) Update(_ context.Context, r external.UpdateRequest[*v1.Folder, *os.Root, fs.FileMode]) (external.UpdateResponse[fs.FileMode], error) {
	mode := map[bool]fs.FileMode{false: 0o755, true: 0o555}[r.Object.Spec.ReadOnly]
	return external.UpdateResponse[fs.FileMode]{}, r.Client.Chmod(r.ID, mode)
}

func (folders) Delete(_ context.Context, r external.DeleteRequest[*v1.Folder, *os.Root]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.RemoveAll(r.ID)
}

//go:embed crds
var crds embed.FS

func main() {
	root := os.TempDir()
	connect := func(context.Context) (*os.Root, error) { return os.OpenRoot(root) }
	options := external.Options[*v1.Folder, *os.Root]{Connect: connect, Unmarked: true, CreateGrace: -1}
	operator.Main(operator.Options{
		Name: "folder", AddToScheme: v1.AddToScheme, CRDs: crds,
		Flags: func(f *pflag.FlagSet) { f.StringVar(&root, "root", root, "directory that contains the folders") },
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{external.New(folders{}, options)}, nil
		},
	})
}

// endregion: operator
