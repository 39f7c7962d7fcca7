package main

import (
	"os"
	"testing"

	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/external/externaltest"
	v1 "github.com/trimtab-dev/trimtab/samples/folder/api/v1"
)

func TestConformance(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	externaltest.Run(t, folders{}, externaltest.Fixture[*v1.Folder, *os.Root]{
		Client: root, Options: external.Options[*v1.Folder, *os.Root]{Unmarked: true},
		New:     func(string) *v1.Folder { return &v1.Folder{} },
		Changes: map[string]func(*v1.Folder){"readOnly": func(f *v1.Folder) { f.Spec.ReadOnly = true }},
	})
}
