package kustomize

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// overlayName is how errors call the overlay of a component.
const overlayName = "the overlay"

// topmost are fields that have an effect only in the topmost kustomization. An overlay has those of what it is over.
type topmost struct {
	metadata []string
	sort     *types.SortOptions
}

// objects builds the kustomization.
func (g *Generator) objects(b Build, o Options) ([]*unstructured.Unstructured, error) {
	k := b.Overlay
	if o.Namespace && k.Namespace == "" {
		k.Namespace = b.Namespace
	}
	if o.NamePrefix && k.NamePrefix == "" {
		k.NamePrefix = b.Name + "-"
	}
	k.TypeMeta = types.TypeMeta{}
	folder := inFiles(g.path)
	var overlay []byte
	if !reflect.DeepEqual(k, types.Kustomization{}) {
		var err error
		if overlay, err = g.overlay(k); err != nil {
			return nil, err
		}
		folder = overlayRoot
	}
	built, err := run(g.tree.with(overlay), folder)
	if err != nil && overlay != nil {
		err = fmt.Errorf("%s: %w", overlayName, err)
	}
	if err != nil {
		return nil, err
	}
	return g.objectsOf(built)
}

// overlay checks an overlay and returns the file with it.
func (g *Generator) overlay(k types.Kustomization) ([]byte, error) {
	c := &checker{tree: g.tree, checked: maps.Clone(g.checked)}
	if err := c.kustomization(source{name: overlayName, folder: ".", overlay: true}, &k); err != nil {
		return nil, err
	}
	k.Resources = append(relative(g.path), relative(resourcesOf(&k)...)...)
	k.Components = relative(k.Components...)
	k.Bases = nil //nolint:staticcheck // they are resources now
	if k.BuildMetadata == nil {
		k.BuildMetadata = g.build.metadata
	}
	if k.SortOptions == nil {
		k.SortOptions = g.build.sort
	}
	text, err := yaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", overlayName, err)
	}
	return text, nil
}

// inFiles returns the path of a folder for kustomize.
func inFiles(folder string) string { return path.Join(filesRoot, folder) }

// relative returns the paths of folders from the overlay.
func relative(folders ...string) []string {
	var out []string
	for _, f := range folders {
		out = append(out, ".."+inFiles(f))
	}
	return out
}

// run runs kustomize.
func run(files layered, folder string) (resmap.ResMap, error) {
	built, err := krusty.MakeKustomizer(&krusty.Options{
		Reorder:          krusty.ReorderOptionUnspecified, // as the command does by default
		LoadRestrictions: types.LoadRestrictionsRootOnly,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(files, folder)
	if err != nil {
		return nil, oneLine(err)
	}
	return built, nil
}

// objectsOf returns what was built.
func (g *Generator) objectsOf(built resmap.ResMap) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	versions := map[string]string{}
	for _, r := range built.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", r.GetKind(), r.GetName(), oneLine(err))
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("%s %s is no object: %w%s", r.GetKind(), r.GetName(), oneLine(err), g.see(r.GetKind(), r.GetName()))
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("a %s has no metadata.name%s", u.GetKind(), g.see(u.GetKind(), ""))
		}
		key := strings.Join([]string{u.GroupVersionKind().GroupKind().String(), u.GetNamespace(), u.GetName()}, " ")
		if before := versions[key]; before != "" {
			return nil, fmt.Errorf("the %s %s is there twice, as %s and %s%s",
				u.GetKind(), u.GetName(), before, u.GetAPIVersion(), g.see(u.GetKind(), u.GetName()))
		}
		versions[key] = u.GetAPIVersion()
		out = append(out, u)
	}
	return out, nil
}

// see returns the files that an object may be from: its name there is part of the name that was built.
func (g *Generator) see(kind, name string) string {
	var files []string
	for _, w := range g.where {
		if w.kind == kind && (name == "" || strings.Contains(name, w.name)) {
			files = append(files, w.at)
		}
	}
	if len(files) == 0 {
		return ""
	}
	return "; see " + strings.Join(files, ", ")
}
