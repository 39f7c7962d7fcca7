package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// Print prints the plan for people.
func (p *Plan) Print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Kind, slashed(p.Namespace, p.Name))
	if p.Deleting {
		b.WriteString(", which is being deleted")
	}
	b.WriteString("\n")
	p.printFile(&b)
	b.WriteString("The next pass, step by step:\n")
	counts := map[string]int{}
	for _, s := range p.Steps {
		if counts[s.Verb]++; s.Verb != verbUnchanged && (!s.own || s.Subresource != "status") {
			s.print(&b)
		}
	}
	if n := counts[verbUnchanged]; n > 0 {
		fmt.Fprintf(&b, "  =  %d written without a difference\n", n)
	}
	p.printEnd(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

func slashed(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// printFile says what applying the file would do.
func (p *Plan) printFile(b *strings.Builder) {
	if p.File == nil {
		return
	}
	switch p.File.Verb {
	case verbCreate:
		b.WriteString("Applying the file would create it.\n")
	case verbUpdate:
		b.WriteString("Applying the file would change it:\n")
		printFields(b, p.File.Fields)
	default:
		b.WriteString("Applying the file would change nothing.\n")
	}
}

// print prints one line about a step, and one for each field of an update.
func (s Step) print(b *strings.Builder) {
	object := s.Object
	if s.Subresource != "" {
		object += " (" + s.Subresource + ")"
	}
	switch s.Verb {
	case verbDecision:
		fmt.Fprintf(b, "  .  decide: %s", cmp.Or(s.Op, "nothing"))
		if s.Why != "" {
			fmt.Fprintf(b, ", because %s", s.Why)
		}
		if s.Rule != "" {
			fmt.Fprintf(b, " (%s)", s.Rule)
		}
	case verbRead:
		fmt.Fprintf(b, "  .  %s %s: %s", s.Op, object, s.Why)
	case verbCall:
		fmt.Fprintf(b, "  >  call %s of %s, in the other system", s.Op, object)
	default:
		fmt.Fprintf(b, "  %s  %s %s", map[string]string{verbCreate: "+", verbUpdate: "~", verbDelete: "-"}[s.Verb], s.Verb, object)
	}
	if s.Error != "" {
		fmt.Fprintf(b, "; it would fail: %s", s.Error)
	}
	b.WriteString("\n")
	if s.Verb == verbUpdate || s.Verb == verbCall {
		printFields(b, s.Fields)
	}
}

func printFields(b *strings.Builder, fields []Difference) {
	for _, f := range fields {
		fmt.Fprintf(b, "       %s: %s -> %s", f.Path, cmp.Or(f.From, "(none)"), cmp.Or(f.To, "(none)"))
		if f.Effect != "" {
			fmt.Fprintf(b, " (%s)", f.Effect)
		}
		b.WriteString("\n")
	}
}

// printEnd says how the pass ends.
func (p *Plan) printEnd(b *strings.Builder) {
	if !p.Changes() {
		b.WriteString("  =  nothing to change\n")
	}
	switch {
	case p.Held:
		b.WriteString("A plan does not make the call, so what comes after it is not known.\n")
	case p.Message != "" || p.State != "":
		fmt.Fprintf(b, "Then the status would say: state %s, Ready %s: %s\n", cmp.Or(p.State, "(none)"), cmp.Or(p.Ready, "(none)"), p.Message)
	}
	if p.Error != "" {
		fmt.Fprintf(b, "The pass would fail: %s\n", p.Error)
	}
	for _, e := range p.Events {
		fmt.Fprintf(b, "Event: %s\n", e)
	}
	if p.Again != "" && !p.Held {
		fmt.Fprintf(b, "Without an event, the next pass after it is due in %s.\n", p.Again)
	}
}
