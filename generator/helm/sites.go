package helm

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template/parse"

	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// Each place in a template that calls a random function has results of its own. A chart may stop calling such a function
// at one place, because a lookup now finds what was drawn before. The other places must still return what they did.
// A function of a template does not know who calls it, so each call gets a function of its own, and each rendered template
// says its name first.

// enter is the function that notes which template is rendered.
const enter = "trimtabEnter"

// site is a place in a template at which such a function is called.
type site struct {
	// function is its name, and alias the one that it has there.
	function, alias string
}

// mark finds the sites of a chart.
func (s *source) mark(c *chart.Chart) {
	s.marked = map[string][]byte{}
	for name, text := range templatesOf(c) {
		if marked, ok := s.markIn(name, string(text)); ok {
			s.marked[name] = []byte(marked)
		}
	}
}

// templatesOf returns the templates of a chart and of its sub-charts.
func templatesOf(c *chart.Chart) map[string][]byte {
	all := map[string][]byte{}
	for _, t := range c.Templates {
		all[path.Join(c.ChartFullPath(), t.Name)] = t.Data
	}
	for _, sub := range c.Dependencies() {
		maps.Copy(all, templatesOf(sub))
	}
	return all
}

// markIn returns a template whose sites have functions of their own. It is not ok if there is nothing to change.
func (s *source) markIn(name, text string) (marked string, ok bool) {
	if !slices.ContainsFunc(fickle(), func(f string) bool { return strings.Contains(text, f) }) {
		return "", false
	}
	tree, trees := parse.New(name), map[string]*parse.Tree{}
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "", "", trees); err != nil {
		return "", false // Helm says what is wrong
	}
	var calls []*parse.IdentifierNode
	for _, t := range trees {
		walk(t.Root, func(n *parse.IdentifierNode) {
			if at := int(n.Pos); slices.Contains(fickle(), n.Ident) && strings.HasPrefix(text[min(at, len(text)):], n.Ident) {
				calls = append(calls, n)
			}
		})
	}
	slices.SortFunc(calls, func(a, b *parse.IdentifierNode) int { return cmp.Compare(b.Pos, a.Pos) }) // the last one first
	for i, n := range calls {
		alias := fmt.Sprintf("%s_%s_%d", n.Ident, digestOf(name)[:8], len(calls)-i)
		s.sites = append(s.sites, site{n.Ident, alias})
		at := int(n.Pos)
		text = text[:at] + alias + text[at+len(n.Ident):]
	}
	if !strings.HasPrefix(path.Base(name), "_") {
		text = fmt.Sprintf("{{ %s %q }}", enter, name) + text
	}
	return text, true
}

// walk visits the names of functions in a part of a template.
func walk(n parse.Node, visit func(*parse.IdentifierNode)) {
	branch := func(n *parse.BranchNode) {
		walk(n.Pipe, visit)
		walk(n.List, visit)
		walk(n.ElseList, visit)
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, part := range n.Nodes {
				walk(part, visit)
			}
		}
	case *parse.PipeNode:
		if n != nil {
			for _, command := range n.Cmds {
				walk(command, visit)
			}
		}
	case *parse.CommandNode:
		for _, arg := range n.Args {
			walk(arg, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.TemplateNode:
		walk(n.Pipe, visit)
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.IdentifierNode:
		visit(n)
	}
}
