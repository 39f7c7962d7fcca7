package lint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"golang.org/x/tools/go/analysis"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trimtab-dev/trimtab/lint"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// finding is a diagnostic.
type finding struct {
	analyzer, text string
}

// vet runs all analyzers over folders, as users do, and returns what they find by "file:line".
//
// go vet caches what it found apart from the fact that it looked. Where the cache has lost only the former, go vet reports nothing.
// So it gets copies that it has never seen: each ends with the name of a new folder.
func vet(t *testing.T, folders ...string) map[string][]finding {
	t.Helper()
	dir := t.TempDir()
	tool, overlay := filepath.Join(dir, "vettool"), filepath.Join(dir, "overlay.json")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", tool, "./testdata/vettool").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	originals := overlaid(t, dir, overlay, folders...)
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"vet", "-overlay=" + overlay, "-vettool=" + tool, "-json"}, folders...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("go vet: %v\n%s%s", err, &errs, &out)
	}
	return decode(t, out.String()+errs.String(), originals)
}

// decode reads what go vet printed. originals are the files that it speaks of, by the paths of their copies.
func decode(t *testing.T, out string, originals map[string]string) map[string][]finding {
	t.Helper()
	all := map[string][]finding{}
	for _, line := range regexp.MustCompile(`(?m)^#.*$`).Split(out, -1) {
		decoder := json.NewDecoder(strings.NewReader(line))
		for decoder.More() {
			var units map[string]map[string][]struct{ Posn, Message string }
			if err := decoder.Decode(&units); err != nil {
				t.Fatalf("go vet printed %q: %v", line, err)
			}
			for _, unit := range units {
				for analyzer, diagnostics := range unit {
					for _, d := range diagnostics {
						at := strings.SplitN(d.Posn, ":", 3)
						if originals[at[0]] == "" {
							t.Fatalf("go vet found something that is no example: %s: %s", d.Posn, d.Message)
						}
						place := originals[at[0]] + ":" + at[1]
						all[place] = append(all[place], finding{analyzer: analyzer, text: d.Message})
					}
				}
			}
		}
	}
	return all
}

// overlaid copies the Go files of folders into dir, and writes the file overlay, by which go uses the copies. It returns the paths of
// the originals by those of the copies.
func overlaid(t *testing.T, dir, overlay string, folders ...string) map[string]string {
	t.Helper()
	copies, originals := map[string]string{}, map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			original, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(dir, fmt.Sprintf("%d-%s", len(copies), filepath.Base(file)))
			if err := os.WriteFile(copied, append(data, "\n// "+dir+"\n"...), 0o600); err != nil {
				t.Fatal(err)
			}
			copies[original], originals[copied] = copied, original
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": copies})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return originals
}

// wanted returns the expectations in the sources of folders.
func wanted(t *testing.T, folders ...string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	expectation := regexp.MustCompile(`// want(-below)? ("(?:[^"\\]|\\.)*")`)
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			absolute, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(data), "\n") {
				for _, m := range expectation.FindAllStringSubmatch(line, -1) {
					text, err := strconv.Unquote(m[2])
					if err != nil {
						t.Fatal(err)
					}
					place := fmt.Sprintf("%s:%d", absolute, i+1+len(m[1])/len("-below"))
					all[place] = append(all[place], text)
				}
			}
		}
	}
	return all
}

// folders are those of the examples of an analyzer.
func folders(t *testing.T, analyzer string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"testdata/" + analyzer + "/*.go", "testdata/" + analyzer + "/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			all = append(all, "./"+filepath.Dir(file))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// examples vets the examples of all analyzers, once.
var examples = sync.OnceValue(func() func(t *testing.T) map[string][]finding {
	var once sync.Once
	var all map[string][]finding
	return func(t *testing.T) map[string][]finding {
		t.Helper()
		once.Do(func() {
			var dirs []string
			for _, a := range lint.Analyzers() {
				dirs = append(dirs, folders(t, a.Name)...)
			}
			all = vet(t, dirs...)
		})
		return all
	}
})

// agree checks that what is found in the examples of an analyzer is what their comments want, all of it by that analyzer.
func agree(t *testing.T, analyzer string) {
	t.Helper()
	dirs := folders(t, analyzer)
	want, count := wanted(t, dirs...), 0
	for place, texts := range want {
		count += len(texts)
		for _, text := range texts {
			if !slices.ContainsFunc(examples()(t)[place], func(f finding) bool { return regexp.MustCompile(text).MatchString(f.text) }) {
				t.Errorf("%s: nothing is found that matches %q, but %v", place, text, examples()(t)[place])
			}
		}
		if n := len(examples()(t)[place]); n > len(texts) {
			t.Errorf("%s: %d findings, want %d: %v", place, n, len(texts), examples()(t)[place])
		}
	}
	if count == 0 {
		t.Fatalf("no example in %q is one of a mistake", dirs)
	}
	for place, all := range examples()(t) {
		for _, f := range all {
			within := slices.ContainsFunc(dirs, func(dir string) bool {
				absolute, err := filepath.Abs(dir)
				return err == nil && filepath.Dir(place) == absolute
			})
			if within && (len(want[place]) == 0 || f.analyzer != analyzer && analyzer != "allowance") {
				t.Errorf("%s: %s: %s", place, f.analyzer, f.text)
			}
		}
	}
}

func TestAnalyzers(t *testing.T) {
	t.Parallel()
	if err := analysis.Validate(lint.Analyzers()); err != nil {
		t.Fatal(err)
	}
	for _, a := range lint.Analyzers() {
		if a.Name == "statusowner" {
			continue // has a row
		}
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			agree(t, a.Name)
		})
	}
	t.Run("003-13 status is written only in packages with a reconciler of the kind", func(t *testing.T) {
		t.Parallel()
		agree(t, "statusowner")
	})
}
