package scenarios

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFolderDriverIsTheSamples holds the copy of the driver against the sample.
func TestFolderDriverIsTheSamples(t *testing.T) {
	t.Parallel()
	cut := func(file, from, to string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(b), from)
		text, _, ends := strings.Cut(rest, to)
		if !ok || !ends {
			t.Fatalf("%s has nothing between %q and %q", file, from, to)
		}
		return strings.TrimSpace(text)
	}
	want := cut("../../../samples/folder/main.go", "// region: operator", "//go:embed crds")
	got := cut("folder_driver.go", "// region: driver", "// endregion: driver")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("copy the driver of samples/folder/main.go again (-sample +copy):\n%s", diff)
	}
}
