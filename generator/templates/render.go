package templates

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/component"
	"github.com/trimtab-dev/trimtab/generator/internal/rendering"
)

// Request is what templates are executed for.
type Request struct {
	// Namespace and Name are what the functions of these names return.
	Namespace, Name string
	// Data is {{ . }}.
	Data any
}

// Render executes the templates. Functions that ask for the component or its cluster work in the context of a
// [component.Renderer] or [component.Generator].
func (g *Generator) Render(ctx context.Context, r Request) (component.Set, error) {
	set, err := g.render(ctx, r)
	if err != nil {
		return component.Set{}, fmt.Errorf("templates %s: %w", g.name, err)
	}
	return set, nil
}

func (g *Generator) render(ctx context.Context, r Request) (component.Set, error) {
	files, err := g.execute(ctx, r)
	if err != nil {
		return component.Set{}, err
	}
	if g.options.Build != nil {
		return g.options.Build(files)
	}
	var set component.Set
	objects := rendering.Objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !hasObjects(name) {
			continue
		}
		for line, document := range documents(files[name]) {
			u, err := rendering.Decode(document)
			if err != nil {
				return component.Set{}, rendering.Undecoded(name, files[name], document, err)
			}
			if u == nil {
				continue
			}
			err = objects.Add(u, fmt.Sprintf("%s:%d", name, line), func(u *unstructured.Unstructured) { set.Add(u) })
			if err != nil {
				return component.Set{}, err
			}
		}
	}
	return set, nil
}

// execute returns all files, templates as they were rendered, by the names that they have then.
func (g *Generator) execute(ctx context.Context, r Request) (map[string]string, error) {
	out := map[string]string{}
	e, err := g.execution(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		text := g.files[name]
		if g.isTemplate(name) && !isHidden(name) && (g.options.Build != nil || hasObjects(g.output(name))) {
			if text, err = e.file(name); err != nil {
				return nil, err
			}
		}
		if _, twice := out[g.output(name)]; twice {
			return nil, fmt.Errorf("both %s and %s are %s when they are rendered; delete one", g.output(name), name, g.output(name))
		}
		out[g.output(name)] = text
	}
	return out, nil
}

// run executes one file.
func (g *Generator) run(ctx context.Context, r Request, name string) (string, error) {
	e, err := g.execution(ctx, r)
	if err != nil {
		return "", err
	}
	return e.file(name)
}

// file executes a file.
func (e *execution) file(name string) (string, error) {
	text, err := e.include(name, e.request.Data)
	if err != nil {
		return "", rendering.OneLine(err)
	}
	if line := missing(text); line > 0 {
		return "", fmt.Errorf("%s:%d, as rendered: a value is missing; set it, or use the function default or required", name, line)
	}
	return text, nil
}

// missing returns the line in which a value is printed that is not there, or 0.
func missing(text string) int {
	before, _, found := strings.Cut(text, "<no value>")
	if !found {
		return 0
	}
	return strings.Count(before, "\n") + 1
}

// documents returns the documents of a file with the lines in which they begin.
func documents(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		first, line := 1, 1
		var document strings.Builder
		for part := range strings.SplitAfterSeq(text, "\n") {
			if strings.HasPrefix(part, "---") && strings.TrimSpace(strings.TrimLeft(part, "-")) == "" {
				if !yield(first, document.String()) {
					return
				}
				document.Reset()
				first = line + 1
			} else {
				document.WriteString(part)
			}
			line++
		}
		yield(first, document.String())
	}
}
