package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRead: what others need comes first, wherever it is written.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	one, crds := filepath.Join(dir, "one.yaml"), filepath.Join(dir, "crds")
	if err := os.Mkdir(crds, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		one:                           "# a comment\n---\nkind: Widget\nmetadata: {name: a}\n---\nkind: Namespace\nmetadata: {name: b}\n",
		filepath.Join(crds, "c.yaml"): "kind: CustomResourceDefinition\nmetadata: {name: c}\n",
		filepath.Join(crds, "README"): "nothing",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Read([]string{one, crds})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Namespace/b", "CustomResourceDefinition/c", "Widget/a"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}
