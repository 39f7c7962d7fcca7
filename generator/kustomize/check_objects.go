package kustomize

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// separator is what kustomize separates documents by.
var separator = regexp.MustCompile(`\n---.*\n`)

// documents returns the documents in a text, each after as many empty lines as there are before it. So lines have their
// numbers in the text.
func documents(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out []string
	begin := 0
	for _, at := range append(separator.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		out = append(out, strings.Repeat("\n", strings.Count(text[:begin], "\n"))+text[begin:at[0]])
		begin = at[1]
	}
	return out
}

// isYAML returns an error if a text is no YAML.
func isYAML(name, text string) error {
	for _, d := range documents(text) {
		var v any
		if err := yaml.Unmarshal([]byte(d), &v); err != nil {
			return fmt.Errorf("%s: it is no YAML: %w", name, oneLine(err))
		}
	}
	return nil
}

// isObject reports whether a text is an object itself, and not the name of a file.
func isObject(text string) bool {
	nodes, err := kio.FromBytes([]byte(text))
	return err == nil && len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *kyaml.RNode) bool {
		return n.YNode() == nil || n.YNode().Kind != kyaml.MappingNode || n.GetKind() == "" || n.GetApiVersion() == ""
	})
}

// nodes calls each for the objects in a text.
func nodes(s source, each func(n *kyaml.RNode, at string) error) error {
	for _, d := range documents(s.text) {
		list, err := kio.FromBytes([]byte(d))
		if err == nil {
			var v any
			err = kyaml.Unmarshal([]byte(d), &v) // it finds keys that are there twice
		}
		if err != nil {
			return fmt.Errorf("%s: it is no YAML: %w", s.name, oneLine(err))
		}
		for _, n := range list {
			if err := node(s, n, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// node calls each for an object, or for the objects in a list of them.
func node(s source, n *kyaml.RNode, each func(n *kyaml.RNode, at string) error) error {
	y := n.YNode()
	if y == nil || n.IsNilOrEmpty() {
		return nil
	}
	at := s.name
	if y.Line > 0 {
		at = fmt.Sprintf("%s:%d", s.name, y.Line)
	}
	if y.Kind != kyaml.MappingNode || n.GetKind() == "" || n.GetApiVersion() == "" {
		return fmt.Errorf("%s: it is no object: it lacks apiVersion or kind", at)
	}
	items := n.Field("items")
	if !strings.HasSuffix(n.GetKind(), "List") || items == nil {
		return each(n, at)
	}
	list, err := items.Value.Elements()
	if err != nil {
		return fmt.Errorf("%s: the %s has no list of objects in items", at, n.GetKind())
	}
	for _, item := range list {
		if err := node(s, item, each); err != nil {
			return err
		}
	}
	return nil
}

// objectsIn checks a file with objects. Those of the same kustomization are in objects, with where they are.
func (c *checker) objectsIn(s source, objects map[string]string) error {
	return nodes(s, func(n *kyaml.RNode, at string) error {
		name := n.GetName()
		if name == "" {
			return fmt.Errorf("%s: the %s has no metadata.name", at, n.GetKind())
		}
		key := strings.Join([]string{n.GetApiVersion(), n.GetKind(), n.GetNamespace(), name}, " ")
		if before := objects[key]; before != "" {
			return fmt.Errorf("%s: the %s %s is there twice; the other one is in %s", at, n.GetKind(), name, before)
		}
		objects[key] = at
		c.where = append(c.where, located{n.GetKind(), name, at})
		return nil
	})
}

// plugins checks the configurations of plugins: texts, files, and folders with kustomizations of them.
func (c *checker) plugins(s source, list []string) error {
	for _, name := range list {
		if err := local(s, name, remoteFolder); err != nil {
			return err
		}
		if isObject(name) {
			inline := source{name: s.at(name), text: name, folder: s.folder, overlay: s.overlay}
			if err := nodes(inline, func(n *kyaml.RNode, _ string) error { return c.plugin(inline, n, inline.name) }); err != nil {
				return err
			}
			continue
		}
		from, err := c.pluginSource(s, name)
		if err != nil {
			return err
		}
		if err := nodes(from, func(n *kyaml.RNode, at string) error { return c.plugin(from, n, at) }); err != nil {
			return err
		}
	}
	return nil
}

// pluginSource returns the configurations of plugins in a file, or in a folder with a kustomization.
func (c *checker) pluginSource(s source, name string) (source, error) {
	target, err := c.resolve(s, name)
	if err != nil {
		return source{}, err
	}
	if c.tree.folders[target] && !s.overlay {
		text, err := c.pluginsIn(target)
		return source{name: target + " as it is built", text: text, folder: s.folder}, err
	}
	content, err := c.file(s, name)
	return source{name: target, text: string(content), folder: s.folder}, err
}

// pluginsIn returns the configurations of plugins that a kustomization builds.
func (c *checker) pluginsIn(folder string) (string, error) {
	if _, err := c.folder(folder, types.KustomizationKind); err != nil {
		return "", err
	}
	built, err := run(c.tree.with(nil), inFiles(folder))
	if err != nil {
		return "", fmt.Errorf("%s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return "", fmt.Errorf("%s: %w", folder, oneLine(err))
	}
	return string(text), nil
}

// plugin checks the configuration of a plugin.
func (c *checker) plugin(s source, n *kyaml.RNode, at string) error {
	kind := n.GetKind()
	switch {
	case n.GetApiVersion() != "builtin":
		return fmt.Errorf("%s: kustomize would run a program for the plugin or function %s, and only its built-in plugins can be used", at, kind)
	case kind == "HelmChartInflationGenerator":
		return fmt.Errorf("%s: %s", at, helmRuns)
	case !slices.Contains(krusty.GetBuiltinPluginNames(), kind):
		return fmt.Errorf("%s: kustomize has no plugin %s", at, kind)
	}
	text, err := n.MarshalJSON()
	if err != nil {
		return fmt.Errorf("%s: %w", at, oneLine(err))
	}
	// These are all fields with files of all built-in plugins.
	var p struct {
		types.KvPairSources

		Path, TargetFilePath string
		Paths                []string
		Replacements         []struct{ Path string }
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%s: %w", at, oneLine(err))
	}
	if err := c.pairs(s, n.GetName(), p.KvPairSources); err != nil {
		return err
	}
	for _, text := range p.Paths {
		if err := c.patchOrFile(s, text); err != nil {
			return err
		}
	}
	files := []string{p.Path, p.TargetFilePath}
	for _, r := range p.Replacements {
		files = append(files, r.Path)
	}
	for _, name := range files {
		if name == "" {
			continue
		}
		if err := c.yamlFile(s, name); err != nil {
			return err
		}
	}
	return nil
}
