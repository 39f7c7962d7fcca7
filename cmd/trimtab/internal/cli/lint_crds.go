package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trimtab-dev/trimtab/crdcheck"
)

// lintCRDs prints what is wrong with the CRDs in a folder, and reports whether anything is. An empty name is no folder. except
// are fields that are right nevertheless, as NAME:PATH.
func lintCRDs(out io.Writer, folder string, except []string) (wrong bool, err error) {
	if folder == "" {
		return false, nil
	}
	exceptions := map[string][]string{}
	for _, e := range except {
		name, path, is := strings.Cut(e, ":")
		if !is {
			return false, fmt.Errorf("--except %q: use NAME-OF-CRD:PATH, such as shops.example.org:spec.gitRef", e)
		}
		exceptions[name] = append(exceptions[name], path)
	}
	seen := map[string]bool{}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || entry.IsDir() || ext != ".yaml" && ext != ".yml" {
			return err
		}
		crds, err := readCRDs(path)
		if err != nil { // such as the template of a chart
			wrong = true
			fmt.Fprintf(out, "%s: not checked, because it cannot be read: %v\n", path, err)
		}
		for _, crd := range crds {
			seen[crd.Name] = true
			if err := crdcheck.All(crd, exceptions[crd.Name]...); err != nil {
				wrong = true
				fmt.Fprintf(out, "%s: %v\n", path, err)
			}
		}
		return nil
	})
	if err == nil && len(seen) == 0 && !wrong {
		return false, fmt.Errorf("no CRD is in %s; name a folder with CustomResourceDefinitions in YAML files", folder)
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !seen[name] {
			wrong = true
			fmt.Fprintf(out, "--except: no CRD in %s is called %s\n", folder, name)
		}
	}
	return wrong, err
}

// readCRDs returns the CRDs among the objects in a file, in which there may be others.
func readCRDs(path string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte("kind: CustomResourceDefinition")) {
		return nil, err // it may be the template of a chart, which is no YAML
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw map[string]any
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if raw["kind"] != "CustomResourceDefinition" || raw["apiVersion"] != "apiextensions.k8s.io/v1" {
			continue
		}
		crd, err := asCRD(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
}

func asCRD(raw map[string]any) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, crd)
}
