package manifest

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestDocuments(t *testing.T) {
	files := fstest.MapFS{
		"b/two.yml":  {Data: []byte("a: 1\n---\na: 2\n")},
		"a.yaml":     {Data: []byte("a: 0\n")},
		"c.json":     {Data: []byte(`{"a": 3}`)},
		"ignored.md": {Data: []byte("a: 9")},
	}
	var got []string
	if err := Documents(files, func(d []byte) error { got = append(got, strings.TrimSpace(string(d))); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a: 0", "a: 1", "a: 2", `{"a": 3}`}, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	wrong := errors.New("wrong")
	err := Documents(files, func(d []byte) error {
		if strings.Contains(string(d), "2") {
			return wrong
		}
		return nil
	})
	if !errors.Is(err, wrong) || !strings.HasPrefix(err.Error(), "b/two.yml: ") {
		t.Errorf("error %v", err)
	}
}
