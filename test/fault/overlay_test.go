package fault

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chosen names the mutant that a binary with all of them is to be; none is the real engine.
const chosen = "TRIMTAB_FAULT_MUTANT"

// root leads to the top of the repository.
const root = "testdata/root"

// choice is a file beside those with mutants that tells which one is chosen.
const choice = "package %s\n\nimport \"os\"\n\nvar chosenMutant = os.Getenv(%q)\n"

// buildMutants builds the tests of this package with all mutants in one binary, because a
// build takes longer than most hunts. Each function with a mutant is there as it is and once
// more for each of its mutants; under its own name stands one that calls what is chosen.
func buildMutants(t *testing.T, all []mutant) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(path, content string) {
		laid := filepath.Join(dir, strings.ReplaceAll(filepath.ToSlash(path), "/", "_"))
		original, err := filepath.Abs(filepath.Join("..", "..", path))
		if err == nil {
			err = os.WriteFile(laid, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		replace[original] = laid
	}
	files := map[string][]mutant{}
	for _, m := range all {
		files[m.file] = append(files[m.file], m)
	}
	for file, mutants := range files {
		text, in, err := withMutants(file, mutants)
		if err != nil {
			t.Fatal(err)
		}
		put(file, text)
		put(filepath.Join(filepath.Dir(file), "zz_chosen_mutant.go"), fmt.Sprintf(choice, in, chosen))
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "fault.test")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	quick := []string{"-vet=off", "-ldflags=-s -w", "-gcflags=github.com/trimtab-dev/trimtab/test/fault/...=-N -l"} // nobody debugs it, and it does not run for long
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"test", "-c", "-overlay", overlay, "-o", binary, "."}, quick...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with the mutants: %v\n%s", err, out)
	}
	return binary
}

// withMutants returns a file with all its mutants, and the name of its package.
func withMutants(file string, mutants []mutant) (text, in string, err error) {
	original, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return "", "", err
	}
	whole, err := parse(string(original))
	if err != nil {
		return "", "", err
	}
	variants := map[int][]mutant{}
	var added strings.Builder
	for _, m := range mutants {
		source, err := m.source()
		if err != nil {
			return "", "", err
		}
		mutated, err := parse(source)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", m.what, err)
		}
		i, err := whole.changed(mutated)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", m.what, err)
		}
		variants[i] = append(variants[i], m)
		added.WriteString("\n" + mutated.renamed(i, len(variants[i])) + "\n")
	}
	text = whole.text
	for _, i := range slices.Backward(sortedKeys(variants)) {
		from, to := whole.bounds(i)
		text = text[:from] + whole.renamed(i, 0) + text[to:]
		added.WriteString("\n" + whole.chooser(i, variants[i]) + "\n")
	}
	return text + added.String(), whole.file.Name.Name, nil
}

func sortedKeys(m map[int][]mutant) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// source is a file of Go with what it declares.
type source struct {
	text string
	file *ast.File
}

func parse(text string) (source, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	return source{text, f}, err
}

func (s source) of(n ast.Node) string {
	return s.text[n.Pos()-s.file.FileStart : n.End()-s.file.FileStart]
}

// bounds are those of a declaration without the comment before it.
func (s source) bounds(i int) (from, to int) {
	d := s.file.Decls[i]
	from = int(d.Pos() - s.file.FileStart)
	return from, from + len(s.of(d))
}

// changed returns the one declaration that differs in another version of the file.
func (s source) changed(other source) (int, error) {
	if len(s.file.Decls) != len(other.file.Decls) {
		return 0, fmt.Errorf("a mutant changes one function; this one adds or drops some")
	}
	found := -1
	for i := range s.file.Decls {
		if s.of(s.file.Decls[i]) == other.of(other.file.Decls[i]) {
			continue
		}
		if _, ok := s.file.Decls[i].(*ast.FuncDecl); !ok || found >= 0 {
			return 0, fmt.Errorf("a mutant changes one function, and nothing else")
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("the mutant changes no function")
	}
	return found, nil
}

func variant(name string, n int) string { return name + "Variant" + strconv.Itoa(n) }

// renamed is a function under the name of a variant.
func (s source) renamed(i, n int) string {
	d, _ := s.file.Decls[i].(*ast.FuncDecl)
	from, to := s.bounds(i)
	name := int(d.Name.Pos() - s.file.FileStart)
	return s.text[from:name] + variant(d.Name.Name, n) + s.text[name+len(d.Name.Name):to]
}

// chooser is the function that calls the chosen variant.
func (s source) chooser(i int, mutants []mutant) string {
	d, _ := s.file.Decls[i].(*ast.FuncDecl)
	receiver, on := "", ""
	if d.Recv != nil {
		receiver, on = "(r "+s.of(d.Recv.List[0].Type)+") ", "r."
	}
	var params, args []string
	for _, p := range d.Type.Params.List {
		for range max(1, len(p.Names)) {
			arg := fmt.Sprintf("a%d", len(args))
			params = append(params, arg+" "+s.of(p.Type))
			if _, ok := p.Type.(*ast.Ellipsis); ok {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	results, give := "", ""
	if d.Type.Results != nil {
		results, give = s.of(d.Type.Results)+" ", "return "
	}
	call := func(n int) string {
		return fmt.Sprintf("%s%s%s(%s)", give, on, variant(d.Name.Name, n), strings.Join(args, ", "))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "func %s%s(%s) %s{\n\tswitch chosenMutant {\n", receiver, d.Name.Name, strings.Join(params, ", "), results)
	for n, m := range mutants {
		fmt.Fprintf(&b, "\tcase %q:\n\t\t%s\n", m.what, call(n+1))
	}
	fmt.Fprintf(&b, "\tdefault:\n\t\t%s\n\t}\n}", call(0))
	return b.String()
}
