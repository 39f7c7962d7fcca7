package templates

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/loop"
)

// Options of a [Generator]. The zero value is ready to use.
type Options struct {
	// Suffix is what the names of templates end in, such as ".tpl". It is cut off, so that deployment.yaml.tpl has
	// objects. Empty means that each YAML file is a template, and each whose name ends in .tpl; with Build, every file.
	Suffix string
	// Left and Right enclose actions. Empty means {{ and }}.
	Left, Right string
	// Functions are added to those of templates, and have priority. They must return the same for the same arguments.
	Functions template.FuncMap
	// Build makes the objects of the files that were rendered, by their paths in the folder. Nil means that they are in
	// YAML files. Use it to build a kustomization from templates; see kustomize.Files.
	Build func(files map[string]string) (component.Set, error)
}

// Generator executes the templates of a folder. It is a [component.Generator] whose parameters are the data of the
// templates. Make one with [NewGenerator]. It can be used by several goroutines at a time.
type Generator struct {
	name    string
	files   map[string]string
	options Options
	parsed  *template.Template
	version string
}

var (
	_ component.Generator = (*Generator)(nil)
	_ component.Versioned = (*Generator)(nil)
)

// NewGenerator reads a folder of fsys, and returns a generator for it. A template that cannot be parsed is an error, and
// so is a folder without objects.
func NewGenerator(fsys fs.FS, name string, o Options) (*Generator, error) {
	g := &Generator{name: path.Clean(name), options: o, files: map[string]string{}}
	if err := g.read(fsys); err != nil {
		return nil, fmt.Errorf("templates %s: %w", name, err)
	}
	return g, nil
}

// read reads the folder and parses the templates.
func (g *Generator) read(fsys fs.FS) error {
	if info, err := fs.Stat(fsys, g.name); err != nil {
		return err
	} else if !info.IsDir() {
		return errors.New("it is no folder")
	}
	root, err := fs.Sub(fsys, g.name)
	if err != nil {
		return err
	}
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		text, err := fs.ReadFile(root, name)
		g.files[name] = string(text)
		return err
	})
	if err != nil {
		return err
	}
	if g.options.Build == nil && !slices.ContainsFunc(slices.Collect(maps.Keys(g.files)), func(name string) bool { return hasObjects(g.output(name)) }) {
		return errors.New("no file has objects; name those that do .yaml, and not with _ or a point in front")
	}
	return g.parse()
}

// parse parses the templates.
func (g *Generator) parse() error {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %q %q\n", g.options.Suffix, g.options.Left, g.options.Right)
	g.parsed = template.New("").Delims(g.options.Left, g.options.Right).Funcs(g.functions(nil))
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		fmt.Fprintf(hash, "%q %q\n", name, g.files[name])
		if !g.isTemplate(name) {
			continue
		}
		if _, err := g.parsed.New(name).Parse(g.files[name]); err != nil {
			return unparsed(err)
		}
	}
	g.version = hex.EncodeToString(hash.Sum(nil)[:16])
	return nil
}

// isTemplate reports whether a file is a template.
func (g *Generator) isTemplate(name string) bool {
	if g.options.Suffix != "" {
		return strings.HasSuffix(name, g.options.Suffix)
	}
	return g.options.Build != nil || isYAML(name) || path.Ext(name) == ".tpl"
}

// output returns the name of a file when it is rendered.
func (g *Generator) output(name string) string { return strings.TrimSuffix(name, g.options.Suffix) }

func isYAML(name string) bool { return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" }

// hasObjects reports whether there are objects in a rendered file.
func hasObjects(name string) bool { return isYAML(name) && !isHidden(name) }

// isHidden reports whether a file is only for others.
func isHidden(name string) bool {
	return strings.HasPrefix(path.Base(name), "_") || strings.HasPrefix(path.Base(name), ".")
}

// Generate implements [component.Generator].
func (g *Generator) Generate(ctx context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	data, err := plain(parameters)
	if err != nil {
		return nil, fmt.Errorf("templates %s: %w", g.name, err)
	}
	set, err := g.Render(ctx, Request{Namespace: namespace, Name: name, Data: data})
	if err != nil {
		return nil, err
	}
	operator, err := component.ReconcilerNameFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("templates: %w; use Render to render templates without a component", err)
	}
	return set.Annotated(operator, nil)
}

// plain returns a copy of parameters, which functions such as set may change. Integers stay integers.
func plain(parameters component.Unstructurable) (map[string]any, error) {
	text, err := json.Marshal(parameters.ToUnstructured())
	var data map[string]any
	if err == nil {
		err = json.Unmarshal(text, &data)
	}
	if err != nil {
		return nil, fmt.Errorf("encode the parameters: %w", err)
	}
	return data, nil
}

// Version implements [component.Versioned]. It identifies the files and the options that are no functions.
func (g *Generator) Version() string { return g.version }

// Needs returns the permissions that the operator needs besides those for the dependents: to find out what the cluster
// can do, if a template asks for that. [component.New] asks for them.
func (g *Generator) Needs() []loop.Need {
	for _, text := range g.files {
		if strings.Contains(text, "kubernetesVersion") || strings.Contains(text, "apiVersions") {
			return component.CapabilityNeeds()
		}
	}
	return nil
}

// NewRenderer returns a [component.Renderer] that executes the templates of g with the data that a function returns for a
// component.
func NewRenderer[T component.Object, D any](g *Generator, data func(T) (D, error)) component.Renderer[T] {
	return renderer[T, D]{g, data}
}

type renderer[T component.Object, D any] struct {
	*Generator

	data func(T) (D, error)
}

// Render implements [component.Renderer].
func (r renderer[T, D]) Render(ctx context.Context, request component.RenderRequest[T]) (component.Set, error) {
	data, err := r.data(request.Component)
	if err != nil {
		return component.Set{}, err
	}
	return r.Generator.Render(ctx, Request{Namespace: request.Namespace, Name: request.Name, Data: data})
}
