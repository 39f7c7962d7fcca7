package templates

import (
	"context"
	"fmt"
	"maps"
	"regexp"
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
				if !strings.Contains(err.Error(), "line ") { // the parser counts blank lines
					line += blank(document)
				}
				return component.Set{}, rendering.Undecoded(name, line, err)
			}
			if u == nil {
				continue
			}
			err = objects.Add(u, fmt.Sprintf("%s:%d", name, line+blank(document)), func(u *unstructured.Unstructured) { set.Add(u) })
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
	return text, nil
}

// missing finds what is printed for a value that is not there, in a map and in a pointer.
var missing = regexp.MustCompile(`<no value>|<nil>`)

// complete refuses an output in which a value is missing.
func complete(name, text string) error {
	at := missing.FindStringIndex(text)
	if at == nil {
		return nil
	}
	return fmt.Errorf("%s:%d, as rendered: it has %s, which is printed for a value that is missing; set it, or use the function default or required",
		name, strings.Count(text[:at[0]], "\n")+1, text[at[0]:at[1]])
}

// separator begins a document. What follows in the line is part of it.
var separator = regexp.MustCompile(`^---(?:\s|$)`)

// documents returns the documents of a file with the lines in which they begin.
func documents(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		first, line := 1, 0
		var document strings.Builder
		for part := range strings.SplitAfterSeq(text, "\n") {
			line++
			if separator.MatchString(part) {
				if !yield(first, document.String()) {
					return
				}
				document.Reset()
				first, part = line, part[len("---"):]
			}
			document.WriteString(part)
		}
		yield(first, document.String())
	}
}

// blank returns how many blank lines a document begins with.
func blank(document string) int {
	return strings.Count(document[:len(document)-len(strings.TrimLeft(document, " \t\r\n"))], "\n")
}
