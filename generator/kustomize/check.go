package kustomize

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
)

// Everything that kustomize would read is looked at before kustomize runs: it has no switch that keeps it from fetching
// what is remote, and its errors seldom say in which file something is wrong.

// checker checks kustomizations in a tree.
type checker struct {
	tree *tree
	// checked are the folders that were checked. Those that are being checked are false.
	checked map[string]bool
	where   []located
	tried   []tried
}

// located is where an object is.
type located struct{ kind, name, at string }

// source is a text whose references to files are checked.
type source struct {
	name, text string
	// folder is that of the kustomization, which paths are relative to, even if they are in a file elsewhere.
	folder string
	// overlay: it is one of a component.
	overlay bool
}

// errorf returns an error about a value in the text.
func (s source) errorf(value, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{s.at(value)}, args...)...)
}

// at returns the file, and the line that has a value first, as a word.
func (s source) at(value string) string {
	first, _, _ := strings.Cut(value, "\n")
	word := regexp.MustCompile(`(?:^|[^\w./-])(` + regexp.QuoteMeta(first) + `)(?:[^\w./-]|$)`)
	found := word.FindStringSubmatchIndex(s.text)
	if first == "" || found == nil {
		return s.name
	}
	return fmt.Sprintf("%s:%d", s.name, strings.Count(s.text[:found[2]], "\n")+1)
}

// folder checks a folder with a kustomization of a kind, and what it refers to.
func (c *checker) folder(name, kind string) (*types.Kustomization, error) {
	file, err := c.kustomizationIn(name)
	if err != nil {
		return nil, err
	}
	s := source{name: file, folder: name, text: string(c.tree.files[file])}
	k := &types.Kustomization{}
	if err := k.Unmarshal(c.tree.files[file]); err != nil {
		return nil, fmt.Errorf("%s: %w", file, oneLine(err))
	}
	switch isComponent := k.Kind == types.ComponentKind; {
	case isComponent && kind != types.ComponentKind:
		return nil, s.errorf("kind:", "it is a Component, which belongs in the field components of a kustomization")
	case !isComponent && kind == types.ComponentKind:
		return nil, s.errorf("kind:", "it is no Component; it belongs in the field resources")
	}
	switch done, begun := c.checked[name]; {
	case done:
		return k, nil
	case begun:
		return nil, fmt.Errorf("%s: there is a cycle, in which it refers to itself", file)
	}
	c.checked[name] = false
	if err := c.kustomization(s, k); err != nil {
		return nil, err
	}
	c.checked[name] = true
	if kind == types.KustomizationKind {
		c.tried = append(c.tried, tried{folder: name, file: file, resources: resourcesOf(k)})
	}
	return k, nil
}

// kustomizationIn returns the file with the kustomization in a folder.
func (c *checker) kustomizationIn(folder string) (string, error) {
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := path.Join(folder, name); c.tree.files[file] != nil {
			found = append(found, file)
		}
	}
	switch len(found) {
	case 0:
		if c.tree.files[folder] != nil {
			return "", fmt.Errorf("%s is a file; name the folder that it is in", folder)
		}
		return "", fmt.Errorf("there is no %s", path.Join(folder, konfig.DefaultKustomizationFileName()))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("there are both %s and %s; delete one", found[0], found[1])
}

// kustomization checks what a kustomization refers to.
func (c *checker) kustomization(s source, k *types.Kustomization) error {
	plugins := slices.Concat(k.Generators, k.Transformers, k.Validators)
	for _, check := range []func() error{
		func() error { return unsupported(s, k) },
		func() error { return c.resources(s, resourcesOf(k)) },
		func() error { return c.components(s, k.Components) },
		func() error { return c.generators(s, k) },
		func() error { return c.configurations(s, k) },
		func() error { return c.patches(s, k) },
		func() error { return c.plugins(s, plugins) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// resources checks objects, and kustomizations that this one is over.
func (c *checker) resources(s source, names []string) error {
	objects, named := map[string]string{}, map[string]bool{}
	for _, name := range names {
		target := path.Join(s.folder, name)
		if named[target] {
			return s.errorf(name, "%s is there twice", name)
		}
		named[target] = true
		if err := c.resource(s, name, objects); err != nil {
			return err
		}
	}
	return nil
}

// components checks components.
func (c *checker) components(s source, names []string) error {
	for _, name := range names {
		target, err := c.resolve(s, name)
		if err == nil && !c.tree.folders[target] {
			err = s.errorf(name, "the component %s is no folder", name)
		}
		if err == nil {
			_, err = c.folder(target, types.ComponentKind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// configurations checks what kustomize learns about kinds.
func (c *checker) configurations(s source, k *types.Kustomization) error {
	for _, name := range k.Configurations {
		if err := c.yamlFile(s, name); err != nil {
			return err
		}
	}
	for _, name := range k.Crds {
		if err := c.yamlFile(s, name); err != nil {
			return err
		}
		if len(c.tree.files[path.Join(s.folder, name)]) == 0 { // kustomize panics
			return s.errorf(name, "%s is empty", name)
		}
	}
	return nil
}

const helmRuns = "kustomize would run helm; render the chart with the package generator/helm, or add what it renders as a file"

// unsupported refuses fields.
func unsupported(s source, k *types.Kustomization) error {
	switch {
	case len(k.HelmCharts) > 0:
		return s.errorf("helmCharts", helmRuns)
	case len(k.HelmChartInflationGenerator) > 0:
		return s.errorf("helmChartInflationGenerator", helmRuns)
	case len(k.OpenAPI) > 0:
		return s.errorf("openapi", "the field openapi cannot be used, because kustomize keeps a schema for the whole process; use JSON 6902 patches instead")
	}
	return nil
}

var (
	// remoteFile matches what kustomize gets from a server in place of a file.
	remoteFile = regexp.MustCompile(`(?i)^(git::)*([a-z][a-z0-9+.-]*://|https?:)`)
	// remoteFolder matches what it clones in place of a folder, too.
	remoteFolder = regexp.MustCompile(`(?i)^(git::)*([a-z][a-z0-9+.-]*://|https?:|[a-z][a-z0-9-]*@|github\.com[/:])`)
)

// resource checks what is in the field resources.
func (c *checker) resource(s source, name string, objects map[string]string) error {
	target, err := c.resolve(s, name)
	switch {
	case err != nil:
		return err
	case c.tree.folders[target]:
		_, err := c.folder(target, types.KustomizationKind)
		return err
	}
	content, err := c.file(s, name)
	if err != nil {
		return err
	}
	return c.objectsIn(source{name: target, text: string(content)}, objects)
}

// local refuses what is remote.
func local(s source, name string, remote *regexp.Regexp) error {
	if !remote.MatchString(name) {
		return nil
	}
	name, _, _ = strings.Cut(name, "\n")
	return s.errorf(name, "%s is remote, and nothing is fetched; add a copy of it to the file system", name)
}

// onePath refuses what cannot be a path.
func onePath(s source, name string) error {
	first, _, more := strings.Cut(name, "\n")
	switch {
	case more:
		return s.errorf(name, "what begins with %q is neither a path nor an object", first)
	case name == "":
		return s.errorf(name, "a path is empty")
	}
	return nil
}

// resolve returns the path of a file or a folder in the tree.
func (c *checker) resolve(s source, name string) (string, error) {
	if err := local(s, name, remoteFolder); err != nil {
		return "", err
	}
	if err := onePath(s, name); err != nil {
		return "", err
	}
	target := path.Join(s.folder, name)
	if _, ok := below(".", target); !ok || path.IsAbs(name) {
		return "", s.errorf(name, "%s is outside of the file system", name)
	}
	if c.tree.files[target] == nil && !c.tree.folders[target] {
		return "", s.errorf(name, "%s does not exist", name)
	}
	return target, nil
}

// file checks that a kustomization can read a file, and returns its content.
func (c *checker) file(s source, name string) ([]byte, error) {
	if err := local(s, name, remoteFile); err != nil {
		return nil, err
	}
	if err := onePath(s, name); err != nil {
		return nil, err
	}
	if s.overlay {
		return nil, s.errorf(name, "it names %s; it can name only folders, in resources and components, so put the content into the overlay itself", name)
	}
	target := path.Join(s.folder, name)
	_, inside := below(".", target)
	_, near := below(s.folder, target)
	content, exists := c.tree.files[target]
	switch {
	case !inside || path.IsAbs(name):
		return nil, s.errorf(name, "%s is outside of the file system", name)
	case !near:
		return nil, s.errorf(name, "%s is outside of the folder of the kustomization, which can refer to folders there, but not to files", name)
	case c.tree.folders[target]:
		return nil, s.errorf(name, "%s is a folder, and must be a file", name)
	case !exists:
		return nil, s.errorf(name, "%s does not exist", name)
	}
	return content, nil
}

// yamlFile checks a file whose content is YAML.
func (c *checker) yamlFile(s source, name string) error {
	content, err := c.file(s, name)
	if err != nil {
		return err
	}
	return isYAML(path.Join(s.folder, name), string(content))
}

// generators checks generated ConfigMaps and Secrets. Errors do not show what is in them.
func (c *checker) generators(s source, k *types.Kustomization) error {
	for _, g := range k.ConfigMapGenerator {
		if err := c.pairs(s, g.Name, g.KvPairSources); err != nil {
			return err
		}
	}
	for _, g := range k.SecretGenerator {
		if err := c.pairs(s, g.Name, g.KvPairSources); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) pairs(s source, name string, from types.KvPairSources) error {
	for _, literal := range from.LiteralSources {
		if strings.Index(literal, "=") < 1 {
			return s.errorf(name, "a literal of %s has no key; write key=value", name)
		}
	}
	for _, file := range from.FileSources {
		if err := local(s, file, remoteFile); err != nil {
			return err
		}
		if _, after, ok := strings.Cut(file, "="); ok {
			file = after
		}
		if _, err := c.file(s, file); err != nil {
			return err
		}
	}
	envs := from.EnvSources
	if from.EnvSource != "" {
		envs = append(slices.Clone(envs), from.EnvSource)
	}
	for _, file := range envs {
		content, err := c.file(s, file)
		if err == nil && strings.ToValidUTF8(string(content), "") != string(content) {
			err = s.errorf(file, "%s is no text in UTF-8", file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patches checks patches and replacements.
func (c *checker) patches(s source, k *types.Kustomization) error {
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // users have deprecated fields
		if p.Path != "" {
			if err := c.yamlFile(s, p.Path); err != nil {
				return err
			}
		}
		if err := isYAML(s.at(p.Patch), p.Patch); err != nil {
			return errors.New("a patch in " + err.Error())
		}
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // users have deprecated fields
		if err := c.patchOrFile(s, string(p)); err != nil {
			return err
		}
	}
	for _, r := range k.Replacements {
		if r.Path != "" {
			if err := c.yamlFile(s, r.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// patchOrFile checks what is a strategic patch itself, or the name of a file with one.
func (c *checker) patchOrFile(s source, text string) error {
	if err := local(s, text, remoteFile); err != nil || isObject(text) {
		return err
	}
	return c.yamlFile(s, text)
}
