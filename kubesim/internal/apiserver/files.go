package apiserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

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
	err := documents(files, func(kind metav1.TypeMeta, document []byte) error {
		if kind.Kind != "CustomResourceDefinition" {
			return nil
		}
		if kind.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return fmt.Errorf("a CustomResourceDefinition of %q; write %s", kind.APIVersion, apiextensionsv1.SchemeGroupVersion)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crds = append(crds, crd)
		return sigsyaml.UnmarshalStrict(document, crd)
	})
	if err != nil {
		return nil, fmt.Errorf("kubesim: read CRDs: %w", err)
	}
	return crds, nil
}

// documents visits the documents in the YAML and JSON files of all folders of a file system.
func documents(files fs.FS, visit func(kind metav1.TypeMeta, document []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		switch err := documentsIn(data, visit); {
		case err != nil && bytes.Contains(data, []byte("{{")):
			return fmt.Errorf("%s: a template; give what it renders to, such as the output of helm template", name)
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func documentsIn(data []byte, visit func(kind metav1.TypeMeta, document []byte) error) error {
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var kind metav1.TypeMeta
		if err := sigsyaml.Unmarshal(document, &kind); err != nil {
			return err
		}
		if err := visit(kind, document); err != nil {
			return err
		}
	}
}
