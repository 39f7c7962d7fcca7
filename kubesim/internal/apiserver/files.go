package apiserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// ReadCRDs returns the CRDs in the YAML and JSON files of all folders of a file system.
// Documents of other kinds are skipped. A nil file system holds none.
func ReadCRDs(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if files == nil {
		return nil, nil
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch path.Ext(name) {
		case ".yaml", ".yml", ".json":
		default:
			return nil
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		found, err := crdsIn(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		crds = append(crds, found...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("kubesim: read CRDs: %w", err)
	}
	return crds, nil
}

func crdsIn(data []byte) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := sigsyaml.Unmarshal(doc, &kind); err != nil {
			return nil, err
		}
		if kind.Kind != "CustomResourceDefinition" {
			continue
		}
		if kind.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return nil, fmt.Errorf("a CustomResourceDefinition of %q; write %s", kind.APIVersion, apiextensionsv1.SchemeGroupVersion)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := sigsyaml.UnmarshalStrict(doc, crd); err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
}
