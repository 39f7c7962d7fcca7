package main

import (
	"context"
	"io/fs"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/loop/looptest"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

// TestCrashes kills the operator before and after each of its writes: it never leaves a folder behind.
func TestCrashes(t *testing.T) {
	t.Parallel()
	folder := func(readOnly bool) *v1.Folder {
		return &v1.Folder{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "photos"}, Spec: v1.FolderSpec{ReadOnly: readOnly}}
	}
	looptest.CrashSweep(t, looptest.Sweep{
		New: func() looptest.Subject {
			dir := t.TempDir()
			connect := func(context.Context) (*os.Root, error) { return os.OpenRoot(dir) }
			options := external.Options[*v1.Folder, *os.Root]{Connect: connect, Unmarked: true, CreateGrace: -1}
			return looptest.Subject{
				Process: func() looptest.Controller { return external.New(folders{}, options) },
				External: func() map[string]string {
					found := map[string]string{}
					_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
						if info, statErr := d.Info(); err == nil && statErr == nil {
							found[path] = info.Mode().String()
						}
						return err
					})
					return found
				},
			}
		},
		Cluster: looptest.Cluster{AddToScheme: v1.AddToScheme},
		Ignore: func(u *unstructured.Unstructured) { // that something was updated is not known to a process that did not do it
			unstructured.RemoveNestedField(u.Object, "status", "conditions")
		},
		Versions: []client.Object{folder(false), folder(true)},
	})
}
