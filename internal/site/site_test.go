package main

import (
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestRepository renders the documents of this repository, and follows each link and picture in what came out.
func TestRepository(t *testing.T) {
	t.Parallel()
	files, err := render(os.DirFS("../.."), "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, links := 0, 0
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		pages++
		links += follow(t, files, name, string(content))
		if strings.Contains(string(content), "<script") {
			t.Errorf("%s has a script", name)
		}
	}
	if want := len(documents) + 1; pages < want || links < 10*want {
		t.Errorf("%d pages and %d links; want one for each of %d documents, and some links in each", pages, links, want)
	}
}

var reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// follow checks what a page refers to, without what render knows, and returns how many links there are.
func follow(t *testing.T, files map[string][]byte, name, content string) int {
	t.Helper()
	links := reference.FindAllStringSubmatch(content, -1)
	for _, m := range links {
		u, err := url.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
		if err != nil {
			t.Errorf("%s refers to %q: %v", name, m[1], err)
			continue
		}
		if u.Host == "github.com" && strings.HasPrefix(u.Path, "/trimtab-dev/trimtab/") {
			parts := strings.SplitN(u.Path, "/", 6)
			if _, err := os.Stat(filepath.Join("../..", parts[len(parts)-1])); err != nil || parts[4] != "v0.1.0" && strings.Contains(u.Path, "/blob/") {
				t.Errorf("%s refers to %s, which is not in the repository", name, m[1])
			}
		}
		if u.IsAbs() {
			continue
		}
		to := name
		if u.Path != "" {
			to = path.Join(path.Dir(name), u.Path)
		}
		target, exists := files[to]
		if !exists || u.Fragment != "" && !strings.Contains(string(target), `id="`+u.Fragment+`"`) {
			t.Errorf("%s refers to %q, which is not in the site", name, m[1])
		}
	}
	return len(links)
}

func small(pages map[string]string) fstest.MapFS {
	files := fstest.MapFS{
		"README.md":         {Data: []byte("# trimtab\n\n## What `plan` does\n")},
		"docs/a.md":         {Data: []byte("# A\n\n## Twice\n\n## Twice\n")},
		"docs/p.png":        {Data: []byte("png")},
		"design/0001-x.md":  {Data: []byte("# X\n\n## Why\n")},
		"loop/testing/x.go": {Data: []byte("package testing")},
	}
	for name, text := range pages {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestLinks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		why, text string
		// has is what the page contains, and finding what is wrong instead.
		has, finding string
	}{
		"page":            {"the usual case", "[a](a.md)", `<a href="a.html">a</a>`, ""},
		"up":              {"to the first page", "[start](../README.md#what-plan-does)", `<a href="../index.html#what-plan-does">`, ""},
		"here":            {"within a page", "## Here\n\n[h](#here)", `<a href="#here">`, ""},
		"second":          {"GitHub counts equal headings", "[t](a.md#twice-1)", `<a href="a.html#twice-1">`, ""},
		"code":            {"code is shown where it is", "[x](../loop/testing/x.go)", `<a href="https://github.com/trimtab-dev/trimtab/blob/main/loop/testing/x.go">`, ""},
		"folder":          {"so are folders", "[x](../loop)", `<a href="https://github.com/trimtab-dev/trimtab/tree/main/loop">`, ""},
		"record":          {"and design records", "[x](../design/0001-x.md#why)", `blob/main/design/0001-x.md#why">`, ""},
		"elsewhere":       {"not ours", "[x](https://example.org/x.md#y)", `<a href="https://example.org/x.md#y">`, ""},
		"picture":         {"goes with the site", "![a thing](p.png)", `<img src="p.png" alt="a thing">`, ""},
		"table":           {"scrolled by itself on a small screen", "| a |\n|---|\n| b |", `<div class="wide" tabindex="0"><table>`, ""},
		"block":           {"also with the keyboard", "    $ make", `<pre tabindex="0"><code>$ make`, ""},
		"markup in code":  {"is no markup", "`<table>`", "<code>&lt;table&gt;</code>", ""},
		"no page":         {"renamed", "[x](b.md)", "", "docs/page.md: links to b.md: docs/b.md does not exist"},
		"no heading":      {"reworded", "[x](a.md#thrice)", "", "docs/page.md: links to a.md#thrice: docs/a.md has no heading #thrice"},
		"no heading here": {"reworded", "[x](#there)", "", "docs/page.md: links to #there: docs/page.md has no heading #there"},
		"no record":       {"its headings count, too", "[x](../design/0001-x.md#how)", "", "design/0001-x.md has no heading #how"},
		"no picture":      {"not taken", "![x](q.png)", "", "docs/page.md: shows q.png, which does not exist"},
		"no text":         {"some do not see it", "![](p.png)", "", "docs/page.md: shows p.png without a text"},
		"outside":         {"not in the repository", "[x](../../other)", "", "docs/page.md: links to ../../other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := render(small(map[string]string{"docs/page.md": "# Page\n\n" + tt.text + "\n"}), "main")
			if (err != nil) != (tt.finding != "") || err != nil && !strings.Contains(err.Error(), tt.finding) {
				t.Errorf("error %v, want %q; %s", err, tt.finding, tt.why)
			}
			if page := string(files["docs/page.html"]); !strings.Contains(page, tt.has) {
				t.Errorf("the page lacks %q; %s:\n%s", tt.has, tt.why, page)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"What will it do?":            "what-will-it-do",
		"My API cannot ...":           "my-api-cannot-",
		"`external/verify`, by rows":  "externalverify-by-rows",
		"Größe und Zahl_1 - zuletzt!": "größe-und-zahl_1---zuletzt",
	} {
		d := parse("x.md", []byte("# "+text+"\n"))
		if got := d.headings[0].id; got != want {
			t.Errorf("the heading %q has the anchor %q, want %q as on GitHub", text, got, want)
		}
	}
}

// TestWritten makes the site as make docs does.
func TestWritten(t *testing.T) {
	t.Parallel()
	repo, out := t.TempDir(), filepath.Join(t.TempDir(), "site")
	if err := os.CopyFS(repo, small(map[string]string{"docs/page.md": "# Page & more\n\n![p](p.png)\n"})); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-repository", repo, "-o", out}, io.Discard); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := fs.WalkDir(os.DirFS(out), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"contents.html", "docs/a.html", "docs/p.png", "docs/page.html", "index.html", "style.css"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(out, "docs", "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>Page &amp; more · trimtab</title>", `<link rel="stylesheet" href="../style.css">`, `<a href="../docs/page.html" aria-current="page">Page &amp; more</a>`,
		`<a href="../index.html">trimtab</a>`, `<a href="../contents.html">All headings</a>`,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if err := run([]string{"-repository", filepath.Join(repo, "docs"), "-o", out}, io.Discard); err == nil || !strings.Contains(err.Error(), "run this at the root") {
		t.Errorf("elsewhere: error %v, want what to do", err)
	}
}

var color = regexp.MustCompile(`--(\w+): (#[0-9a-f]{6});`)

// TestContrast computes WCAG's contrast of text and links in both schemes, on the page and on what is softly marked.
func TestContrast(t *testing.T) {
	t.Parallel()
	light, dark, found := strings.Cut(string(style), "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("there is no dark scheme")
	}
	for scheme, css := range map[string]string{"light": light, "dark": dark} {
		colors := map[string]float64{}
		for _, m := range color.FindAllStringSubmatch(css, -1) {
			colors[m[1]] = luminance(t, m[2])
		}
		for _, ground := range []string{"page", "soft"} {
			for ink, want := range map[string]float64{"text": 7, "link": 4.5} {
				a, b := colors[ink], colors[ground]
				if got := (max(a, b) + 0.05) / (min(a, b) + 0.05); got < want || len(colors) < 5 {
					t.Errorf("%s: the contrast of %s on %s is %.1f, want %.1f", scheme, ink, ground, got, want)
				}
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
