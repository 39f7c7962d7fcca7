// Package manifest reads the files in which Kubernetes objects are kept.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Documents calls each for every YAML or JSON document in the files of a file system whose names end
// in .yaml, .yml or .json, in the order of their paths. Errors name the file.
func Documents(files fs.FS, each func(document []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := Split(data, each); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// Split calls each for every YAML or JSON document in data.
func Split(data []byte, each func(document []byte) error) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(document); err != nil {
			return err
		}
	}
}
