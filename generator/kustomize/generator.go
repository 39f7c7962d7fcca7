package kustomize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/trimtab-dev/trimtab/component"
)

// Options of a [Generator]. The zero value is ready to use.
type Options struct {
	// Namespace sets the field namespace of overlays that do not set it to the namespace of the component. Then also
	// objects that name a namespace go there, and so do references to objects in it, such as subjects of bindings.
	Namespace bool
	// NamePrefix sets the field namePrefix of overlays that do not set it to the name of the component and a hyphen. Use
	// it if there can be several components in a namespace, or if there are objects without a namespace.
	NamePrefix bool
}

// Generator builds a kustomization. It is a [component.Generator] whose parameters are an overlay. Make one with
// [NewGenerator]. It can be used by several goroutines at a time.
type Generator struct {
	options Options
	path    string // of the kustomization
	tree    *tree
	version string
	// checked are the folders that were checked by NewGenerator.
	checked map[string]bool
	// where says in which files the objects are.
	where []located
	// build are fields of the kustomization that have an effect only in the topmost one.
	build topmost
}

var (
	_ component.Generator = (*Generator)(nil)
	_ component.Versioned = (*Generator)(nil)
)

// NewGenerator loads the kustomization in a folder of fsys, and returns a generator for it. It reads all files in fsys,
// and paths in a kustomization may lead anywhere in it. A kustomization that cannot be built is an error.
func NewGenerator(fsys fs.FS, name string, o Options) (*Generator, error) {
	t, err := read(fsys)
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", name, err)
	}
	g, _, err := load(t, name, o)
	return g, err
}

// Files builds the kustomization in a folder of these files, whose keys are paths. It is for files that are made for each
// component, such as those of generator/templates. A folder without a kustomization has one with all YAML files in it and
// below it, except those whose names begin with a point. A [Generator] checks its files only once.
func Files(files map[string]string, folder string) (component.Set, error) {
	t := &tree{files: map[string][]byte{}, folders: map[string]bool{}}
	for name, text := range files {
		if !fs.ValidPath(name) {
			return component.Set{}, fmt.Errorf("kustomization %s: %q is no path of a file", folder, name)
		}
		t.add(name, []byte(text))
	}
	t.complete(path.Clean(folder))
	_, built, err := load(t, folder, Options{})
	return setOf(built), err
}

// load makes a generator, and returns what it builds without an overlay.
func load(t *tree, name string, o Options) (*Generator, []*unstructured.Unstructured, error) {
	g, built, err := check(t, path.Clean(name), o)
	if err != nil {
		return nil, nil, fmt.Errorf("kustomization %s: %w", name, err)
	}
	return g, built, nil
}

func check(t *tree, name string, o Options) (*Generator, []*unstructured.Unstructured, error) {
	if !fs.ValidPath(name) {
		return nil, nil, errors.New("it is outside of the file system")
	}
	// Kustomize reads its schema when it is first needed, and not in a way that several goroutines may be in.
	openapi.Schema()
	c := &checker{tree: t, checked: map[string]bool{}}
	k, err := c.folder(name, types.KustomizationKind)
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal([]any{name, o})
	if err != nil {
		return nil, nil, err
	}
	g := &Generator{
		options: o, path: name, tree: t, version: t.digest(text), checked: c.checked, where: c.where,
		build: topmost{k.BuildMetadata, k.SortOptions},
	}
	built, err := g.objects(Build{}, Options{})
	if err != nil {
		return nil, nil, c.diagnose(err)
	}
	return g, built, nil
}

// Generate implements [component.Generator].
func (g *Generator) Generate(_ context.Context, namespace, name string, parameters component.Unstructurable) ([]client.Object, error) {
	b := Build{Namespace: namespace, Name: name}
	text, err := json.Marshal(parameters.ToUnstructured())
	if err == nil {
		err = b.Overlay.Unmarshal(text)
	}
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: the parameters are no overlay: %w", g.path, oneLine(err))
	}
	built, err := g.built(b)
	if err != nil {
		return nil, err
	}
	out := make([]client.Object, len(built))
	for i, u := range built {
		out[i] = u
	}
	return out, nil
}

// Version implements [component.Versioned]. It identifies the files and the options.
func (g *Generator) Version() string { return g.version }

// Build is what a kustomization is built for without a component.
type Build struct {
	// Namespace and Name are those of the component, for [Options].
	Namespace, Name string
	// Overlay is a kustomization over that of the generator. The zero value changes nothing.
	Overlay types.Kustomization
}

// Render builds the kustomization without a component, as kustomize build does.
func (g *Generator) Render(b Build) (component.Set, error) {
	built, err := g.built(b)
	return setOf(built), err
}

func setOf(built []*unstructured.Unstructured) component.Set {
	var set component.Set
	for _, u := range built {
		set.Add(u)
	}
	return set
}

func (g *Generator) built(b Build) ([]*unstructured.Unstructured, error) {
	out, err := g.objects(b, g.options)
	if err != nil {
		return nil, fmt.Errorf("kustomization %s: %w", g.path, err)
	}
	return out, nil
}

// NewRenderer returns a [component.Renderer] that builds the kustomization of g with an overlay, whose fields a function
// sets from a component. Nil means that all components have the same objects.
func NewRenderer[T component.Object](g *Generator, set func(c T, overlay *types.Kustomization) error) component.Renderer[T] {
	return renderer[T]{g, set}
}

type renderer[T component.Object] struct {
	*Generator

	set func(T, *types.Kustomization) error
}

// Render implements [component.Renderer].
func (r renderer[T]) Render(_ context.Context, request component.RenderRequest[T]) (component.Set, error) {
	b := Build{Namespace: request.Namespace, Name: request.Name}
	if r.set != nil {
		if err := r.set(request.Component, &b.Overlay); err != nil {
			return component.Set{}, err
		}
	}
	return r.Generator.Render(b)
}
