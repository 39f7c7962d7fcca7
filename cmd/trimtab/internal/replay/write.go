package replay

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/inspect"
	"github.com/trimtab-dev/trimtab/trace"
)

// Input is what a test is written from.
type Input struct {
	Pass inspect.Pass
	// Object is the object of the pass, as it is now.
	Object *unstructured.Unstructured
	// Module is the path of the operator's module. Empty: it is not known, and the test has a line to change.
	Module string
}

// File is a Go file for the folder of the operator's main package.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Write writes the test.
func Write(in Input) (File, error) {
	if err := in.check(); err != nil {
		return File{}, err
	}
	content, err := in.content()
	if err != nil {
		return File{}, err
	}
	var out bytes.Buffer
	layout := template.New("").Funcs(template.FuncMap{"comment": comment})
	if err := template.Must(layout.Parse(layoutText)).Execute(&out, content); err != nil {
		return File{}, err
	}
	text, err := format.Source(out.Bytes())
	if err != nil {
		return File{}, fmt.Errorf("format the test: %w", err)
	}
	return File{strings.ToLower(content.Name) + "_test.go", string(text)}, nil
}

// check says why a pass cannot be repeated.
func (in Input) check() error {
	start, began := in.Pass.Start()
	_, ended := in.Pass.End()
	switch {
	case !began:
		return errors.New("the beginning of the pass is not recorded any more, so that a test could not compare the whole of it; choose a newer pass")
	case !ended:
		return errors.New("the end of the pass is not recorded, so that a test could not compare the whole of it; choose another pass")
	case start.Vanished:
		return errors.New("the object was gone already when the pass began, and nothing is left of it to begin a test with; choose another pass")
	case in.Pass.Object.UID != "" && string(in.Object.GetUID()) != in.Pass.Object.UID:
		return errors.New("the object is another one by now, which has the same name; choose a pass over it")
	case start.Deleting && in.Object.GetDeletionTimestamp() == nil:
		return errors.New("the object was being deleted, and is not any more; choose another pass")
	case isComponent(in.Object):
		return errors.New("a component learns of its dependents by watches, which looptest does not have; test it with package component/componenttest")
	}
	return nil
}

// isComponent reports whether the status of an object lists dependents.
func isComponent(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc([]string{"inventory", "compactInventory", "inventoryShards"}, func(field string) bool {
		_, has, _ := unstructured.NestedFieldNoCopy(o.Object, "status", field)
		return has
	})
}

//go:embed test.go.tmpl
var layoutText string

// comment is a text as one line of a comment, whatever somebody wrote into an object: a line more would be code.
func comment(text string) string {
	words := strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	return strings.Join(words, " ")
}

// content is what the layout is filled with.
type content struct {
	// Name names the test, and Constant begins the names of its constants.
	Name, Constant string
	// About says which pass it was, and Begins what the test begins with. Each is one line of a comment.
	About  string
	Begins []string
	// API are the calls, and Unlike is what the test cannot have as it was.
	API, Unlike []string
	// Package is that of the kind, which is a guess if the module is not known.
	Package, PackageName string
	Guessed              bool
	External             bool
	ClusterWide          bool
	// Retries is how many passes went before this one.
	Retries int
	// Did is what the pass did; the others are objects. They are Go literals, and empty if there is none.
	Did, Object, Before string
	// WroteStatus: the pass began with another status than it ended with. If not, that of the operator's own passes is the right one.
	WroteStatus bool
	// Deleted: the object of the pass was being deleted, and that of Before is not.
	Deleted bool
}

func (in Input) content() (content, error) {
	p := in.Pass
	o, changed := begun(in.Object, p)
	start, _ := p.Start()
	name := fmt.Sprintf("%s%sPass%d", identifier(o.GetKind()), identifier(o.GetName()), p.Number)
	_, version := path.Split(o.GetAPIVersion())
	c := content{
		Name: name, Constant: strings.ToLower(name[:1]) + name[1:], Did: literal(trace.Transcript(p.Records)),
		About:   fmt.Sprintf("the controller %s did in pass %d, at %s", p.Controller, p.Number, p.Began().UTC().Format(time.RFC3339)),
		Package: path.Join(in.Module, "api", version), PackageName: version, External: external(p),
		ClusterWide: o.GetNamespace() == "", Retries: start.Attempt, WroteStatus: wrote(p, "status", ""),
	}
	if in.Module == "" {
		c.Package, c.Guessed = path.Join("example.com/operator/api", version), true
	}
	c.Begins = append([]string{since(in.Object, p)}, changed...)
	for _, r := range p.Records {
		if e, is := r.Event.(trace.Call); is {
			c.API = append(c.API, lineOf(r))
			if e.Err != "" {
				c.Unlike = append(c.Unlike, lineOf(r))
			}
		}
	}
	return c, c.objects(o, p)
}

// objects adds the objects with which the test begins.
func (c *content) objects(o *unstructured.Unstructured, p inspect.Pass) error {
	secrets := false
	add := func(to *string, u *unstructured.Unstructured) error {
		if u == nil {
			return nil
		}
		text, hidden, err := manifest(u)
		*to, secrets = literal(text), secrets || hidden
		return err
	}
	var before *unstructured.Unstructured
	if c.External {
		var unlike []string
		before, unlike = creating(o, p)
		c.Unlike = append(unlike, c.Unlike...)
	}
	if before != nil { // the object becomes o by a patch, except for what is the operator's and the server's
		o = o.DeepCopy()
		unrecord(o)
		o.SetGeneration(0)
		c.Deleted = o.GetDeletionTimestamp() != nil
		undelete(o)
	}
	err := errors.Join(add(&c.Before, before), add(&c.Object, o))
	if secrets {
		c.Begins = append(c.Begins, "What was recognized as a secret is left out of it; put something else in its place, and look for others before you commit this.")
	}
	return err
}

// since says how the object of now is related to the one of the pass.
func since(now *unstructured.Unstructured, p inspect.Pass) string {
	if unchanged(now, p) {
		return "Nothing has changed the object since the pass."
	}
	return "The object has changed since the pass: compare what is below with what you know about it."
}

// external reports whether a pass was one of package external, whose decisions name rows of its table.
func external(p inspect.Pass) bool {
	return slices.ContainsFunc(p.Records, func(r trace.Record) bool {
		e, is := r.Event.(trace.Decision)
		return is && strings.HasPrefix(e.Rule, "D-")
	})
}

func lineOf(r trace.Record) string {
	return comment(inspect.Pass{Records: []trace.Record{r}}.Lines()[0])
}

// identifier is a name in the form of a Go identifier that continues another one.
func identifier(name string) string {
	var b strings.Builder
	up := true
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// literal is a text as a Go literal that shows its lines.
func literal(text string) string {
	if !strings.Contains(text, "`") && strconv.CanBackquote(strings.ReplaceAll(text, "\n", "")) {
		return "`\n" + text + "`"
	}
	lines := slices.Collect(strings.Lines(text))
	for i, line := range lines {
		lines[i] = strconv.Quote(line)
	}
	return `"\n" +` + "\n" + strings.Join(lines, " +\n")
}
