package apiserver

import (
	"bufio"
	"bytes"
	"encoding/json"
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
// Documents of other kinds are skipped, and so are kustomize's patches of a CRD that is among the others. A nil
// file system holds none.
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
	return withoutPatches(crds), nil
}

// withoutPatches returns CRDs without those that say nothing about their kind and have the name of another.
func withoutPatches(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	whole := map[string]bool{}
	for _, crd := range crds {
		if crd.Spec.Group != "" {
			whole[crd.Name] = true
		}
	}
	return slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group == "" && whole[crd.Name]
	})
}

// Patches returns the names of the files that hold patches for kustomize, in the order of the file systems. Nothing
// applies them.
func Patches(all ...fs.FS) (names []string) {
	for _, files := range all {
		if files == nil {
			continue
		}
		_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !IsManifest(name) {
				return nil //nolint:nilerr // what cannot be read was reported when its objects were
			}
			if data, err := fs.ReadFile(files, name); err == nil && hasPatch(data) {
				names = append(names, name)
			}
			return nil
		})
	}
	return names
}

// hasPatch reports whether a document of a file is a list of changes, or a part of a CRD.
func hasPatch(data []byte) bool {
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if err != nil {
			return false
		}
		part := bytes.Contains(document, []byte("kind: CustomResourceDefinition")) && !bytes.Contains(document, []byte("group:"))
		if part || isList(document) {
			return true
		}
	}
}

// IsManifest reports whether a file with this name is read.
func IsManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// isList reports whether a document is a list, as kustomize's JSON patches are, and not an object.
func isList(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("---")) {
			continue
		}
		return bytes.HasPrefix(line, []byte("- ")) || line[0] == '['
	}
	return false
}

// documents visits the documents in the YAML and JSON files of all folders of a file system, but no lists, which are
// patches for kustomize.
func documents(files fs.FS, visit func(kind metav1.TypeMeta, document []byte) error) error {
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !IsManifest(name) {
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
		if isList(document) {
			continue
		}
		if err := visitItems(document, visit); err != nil {
			return err
		}
	}
}

// visitItems visits the object in a document, or those of a List, which kubectl prints for several objects.
func visitItems(document []byte, visit func(kind metav1.TypeMeta, document []byte) error) error {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := sigsyaml.Unmarshal(document, &list.TypeMeta); err != nil {
		return err
	}
	if list.Kind != "List" || list.APIVersion != "v1" {
		return visit(list.TypeMeta, document)
	}
	if err := sigsyaml.Unmarshal(document, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		if err := visitItems(item, visit); err != nil {
			return err
		}
	}
	return nil
}
