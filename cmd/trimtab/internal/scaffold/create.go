package scaffold

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/trimtab-dev/trimtab/internal/kindgen"
)

// Trimtab is the path of the module that new modules require.
const Trimtab = "github.com/trimtab-dev/trimtab"

//go:embed all:templates
var templates embed.FS

// Create makes the module in a folder of the project's name in the working directory. The project is complete and has been
// checked. If anything fails, no folder is left.
func (p Project) Create(ctx context.Context) (err error) {
	files, err := p.files()
	if err != nil {
		return err
	}
	unfinished, err := os.MkdirTemp(".", "."+p.Name+"-")
	if err != nil {
		return fmt.Errorf("create the folder %s: %w", p.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(unfinished)) }()
	if err := os.Chmod(unfinished, 0o755); err != nil { //nolint:gosec // source code is for everybody
		return err
	}
	for name, content := range files {
		if err := kindgen.WriteFile(filepath.Join(unfinished, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
	if p.Chart != "" {
		if err := os.CopyFS(filepath.Join(unfinished, "chart"), os.DirFS(p.Chart)); err != nil {
			return fmt.Errorf("copy the chart: %w", err)
		}
	}
	if err := p.complete(ctx, unfinished); err != nil {
		return err
	}
	if err := os.Remove(p.Name); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty folder
		return err
	}
	return os.Rename(unfinished, p.Name)
}

// rendered is what the test of a component compares with.
const rendered = "testdata/rendered.yaml"

// files returns what templates make, by slash-separated paths. Code is formatted.
func (p Project) files() (map[string][]byte, error) {
	from := string(p.Form)
	if p.Chart != "" {
		from = "chart"
	}
	files := map[string][]byte{}
	sources := map[string]string{
		"go.mod": "go.mod", "main.go": from + "/main.go", "main_test.go": from + "/main_test.go", "example.yaml": from + "/example.yaml",
		"api/v1alpha1/" + strings.ToLower(p.Kind) + ".go": from + "/kind.go",
	}
	if from == string(Component) {
		sources[rendered] = "component/rendered.yaml"
	}
	for to, source := range sources {
		content, err := p.execute(source)
		if err != nil {
			return nil, err
		}
		files[to] = content
	}
	return files, nil
}

func (p Project) execute(source string) ([]byte, error) {
	t, err := template.ParseFS(templates, "templates/"+source+".tmpl", "templates/list.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, path.Base(source)+".tmpl", p); err != nil {
		return nil, err
	}
	if path.Ext(source) != ".go" {
		return out.Bytes(), nil
	}
	content, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", source, err)
	}
	return content, nil
}

// complete adds what no template can: go.sum and the rest of go.mod, deep copies and the CRD.
func (p Project) complete(ctx context.Context, folder string) error {
	// The module is in no workspace yet, and its dependencies are in no vendor folder.
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	if err := p.goMod(ctx, folder, env); err != nil {
		return err
	}
	// The go command knows packages by absolute paths only.
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	generated, err := kindgen.Module(ctx, root, env)
	if err != nil {
		return err
	}
	stale, err := kindgen.Stale(root, generated)
	if err != nil {
		return err
	}
	if err := kindgen.Write(root, generated, stale); err != nil || p.Chart == "" {
		return err
	}
	return render(ctx, folder, env)
}

// goMod runs go mod tidy, which completes go.mod and writes go.sum.
func (p Project) goMod(ctx context.Context, folder string, env []string) error {
	if p.Replace != "" { // so that nothing is asked of a checksum database that the checkout knows
		sums, err := os.ReadFile(filepath.Join(p.Replace, "go.sum"))
		if err != nil {
			return err
		}
		if err := kindgen.WriteFile(filepath.Join(folder, "go.sum"), sums); err != nil {
			return err
		}
	}
	return run(ctx, folder, env, "mod", "tidy")
}

// render has the test of a chart write the file that it compares with. It also proves that the chart can be rendered.
func render(ctx context.Context, folder string, env []string) error {
	if err := kindgen.WriteFile(filepath.Join(folder, filepath.FromSlash(rendered)), []byte{}); err != nil {
		return err
	}
	err := run(ctx, folder, append(env, "UPDATE_GOLDEN=1"), "test", ".")
	failed, is := errors.AsType[*commandError](err)
	if !is {
		return err
	}
	if why := complaint.FindSubmatch(failed.out); why != nil {
		return fmt.Errorf("the chart cannot be rendered with its own values: %s", why[1])
	}
	return err
}

// complaint is what the test of a component says.
var complaint = regexp.MustCompile(`(?m)^ +main_test\.go:\d+: (?:render: )?(.*)$`)

// commandError is a command that failed, with what it said.
type commandError struct {
	command string
	err     error
	out     []byte
}

func (e *commandError) Error() string { return fmt.Sprintf("%s: %v\n%s", e.command, e.err, e.out) }
func (e *commandError) Unwrap() error { return e.err }

// run runs the go command.
func run(ctx context.Context, folder string, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = folder, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return &commandError{command: "go " + strings.Join(args, " "), err: err, out: bytes.TrimSpace(out)}
	}
	return nil
}
