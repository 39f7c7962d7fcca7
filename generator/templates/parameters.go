package templates

import (
	"context"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// Parameters makes the parameters of a generator by a template. It is a parameter transformer for transform.New. Make one
// with [NewParameters].
type Parameters struct {
	file      string
	generator *Generator
}

// NewParameters reads a template from a file of fsys. Its data are the parameters that it is given, with Namespace
// and Name, and its output is the YAML of those that it returns. It has the functions of the package, without a component.
func NewParameters(fsys fs.FS, file string) (*Parameters, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	name := path.Base(file)
	g := &Generator{name: file, files: map[string]string{name: string(text)}, options: Options{Suffix: name}}
	return &Parameters{name, g}, g.parse()
}

// TransformParameters returns the parameters that the template makes of these.
func (p *Parameters) TransformParameters(namespace, name string, parameters component.Unstructurable) (component.Unstructurable, error) {
	out, err := p.transform(namespace, name, parameters)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", p.generator.name, err)
	}
	return out, nil
}

func (p *Parameters) transform(namespace, name string, parameters component.Unstructurable) (values, error) {
	data, err := plain(parameters)
	if err != nil {
		return nil, err
	}
	if data == nil {
		data = map[string]any{}
	}
	data["Namespace"], data["Name"] = namespace, name
	text, err := p.generator.run(context.Background(), Request{namespace, name, data}, p.file) //nolint:forbidigo // it asks nobody
	if err != nil {
		return nil, err
	}
	out, err := fromYAML[values](text)
	if err != nil {
		return nil, rendering.Undecoded(p.file, 1, err)
	}
	return out, nil
}

// Version identifies the template. See [component.Versioned].
func (p *Parameters) Version() string { return p.generator.version }

// values are parameters.
type values map[string]any

// ToUnstructured returns a copy of the values.
func (v values) ToUnstructured() map[string]any { return runtime.DeepCopyJSON(v) }
