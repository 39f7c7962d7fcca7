package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFill(t *testing.T) {
	source := func(file, region string) ([]string, error) {
		if file != "a.go" {
			return nil, os.ErrNotExist
		}
		return []string{"cut " + region}, nil
	}
	tests := map[string]struct {
		why     string
		doc     string
		want    string
		wantErr string
	}{
		"current": {
			why:  "what is current stays as it is",
			doc:  "a\n<!-- cut a.go#x -->\n```go\ncut x\n```\nb\n",
			want: "a\n<!-- cut a.go#x -->\n```go\ncut x\n```\nb\n",
		},
		"stale": {
			why:  "old lines go, however many there are",
			doc:  "<!-- cut a.go#x -->\n```go\nold\nolder\n```\n",
			want: "<!-- cut a.go#x -->\n```go\ncut x\n```\n",
		},
		"whole file": {
			why:  "without a region the file is shown whole",
			doc:  "<!-- cut a.go -->\n```\n```",
			want: "<!-- cut a.go -->\n```\ncut \n```",
		},
		"another name": {
			why:  "code moves into a module of the reader's own",
			doc:  "<!-- cut a.go#x with cut=paste -->\n```go\n```",
			want: "<!-- cut a.go#x with cut=paste -->\n```go\npaste x\n```",
		},
		"shell block": {
			why:  "only Go must be cut; commands are typed",
			doc:  "```sh\nmake demo\n```",
			want: "```sh\nmake demo\n```",
		},
		"typed Go": {
			why:     "Go that nobody compiled is refused, with its line",
			doc:     "text\n\n```go\nfunc main() {}\n```",
			wantErr: "3: a block of Go must be cut from a tested file: put <!-- cut FILE#REGION --> on the line above",
		},
		"no such file": {
			why:     "a source that was moved is noticed",
			doc:     "<!-- cut b.go -->\n```go\n```",
			wantErr: "2: file does not exist",
		},
		"open block": {
			why:     "an open block would swallow the rest of the document",
			doc:     "```sh\nmake",
			wantErr: "1: the block is not closed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := fill(tt.doc, source)
			if diff := cmp.Diff(tt.wantErr, text(err)); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tt.why, diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	root := t.TempDir()
	const source = `package a

// region: outer

func A() {
	// region: inner
	if b {

		c()
	}
	// endregion: inner
}

// endregion: outer
`
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		why     string
		region  string
		want    []string
		wantErr string
	}{
		"whole": {
			why:  "borders are not part of the code, and leave no gap",
			want: []string{"package a", "", "func A() {", "\tif b {", "", "\t\tc()", "\t}", "}"},
		},
		"outer": {
			why:    "borders of a region within are left out, and empty lines beside its own",
			region: "outer",
			want:   []string{"func A() {", "\tif b {", "", "\t\tc()", "\t}", "}"},
		},
		"inner": {
			why:    "common indentation goes, an empty line does not count",
			region: "inner",
			want:   []string{"if b {", "", "\tc()", "}"},
		},
		"unknown": {
			why:     "a misspelt region is an error, not an empty block",
			region:  "other",
			wantErr: `a.go has no line "region: other"`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := excerpt(root, "a.go", tt.region)
			if diff := cmp.Diff(tt.wantErr, text(err)); diff != "" {
				t.Errorf("%s: error (-want +got):\n%s", tt.why, diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestExported: the list says what users can write down, once each, and nothing of what they cannot.
func TestExported(t *testing.T) {
	source := `package p

type (
	Box[T any] struct {
		Inner
		Size, Depth int // how large
		hidden bool
	}
	Opener interface {
		Open(ctx context.Context,
			names ...string) error
	}
	Set interface{ ~int | ~string }
	Color int
	inner struct{ Shown int }
	Handler func(Box[int]) error
)

const (
	Red Color = iota
	Green
	blue
	Name = "p"
)

var Default, other = 1, 2

func New[T any](o Opener) *Box[T] { return nil }
func open() {}
func (b *Box[T]) Close() (err error) { return nil }
func (b Box[T]) close() {}
func (inner) Open() {}
`
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	got := exported(f)
	slices.Sort(got)
	want := []string{
		"const Green Color",
		"const Name",
		"const Red Color",
		"func (*Box[T]) Close() (err error)",
		"func New[T any](o Opener) *Box[T]",
		"type Box, Depth int",
		"type Box, Size int",
		"type Box, embeds Inner",
		"type Box[T any] struct",
		"type Color int",
		"type Handler func(Box[int]) error",
		"type Opener interface",
		"type Opener, Open(ctx context.Context, names ...string) error",
		"type Set interface{ ~int | ~string }",
		"var Default",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPublic(t *testing.T) {
	for dir, want := range map[string]bool{
		"external": true, "trace/tracetest": true, "": false, "internal/plain": false, "cmd/trimtab": false, "samples/nats/api": false,
	} {
		if public(dir) != want {
			t.Errorf("public(%q) is %v", dir, !want)
		}
	}
}

// TestCopies proves that a copy has the type, its methods and the imports that they use, and no more.
func TestCopies(t *testing.T) {
	t.Parallel()
	const source = `package main

import (
	"errors"
	"os"

	v1 "example.com/api/v1"
	"example.com/other"
)

// drivers is a driver.
type drivers struct{}

func (drivers) Name(o *v1.Thing) (string, error) {
	// Why it fails.
	return "", errors.New(o.Name)
}

func main() { other.Main(os.Args, drivers{}) }
`
	const want = `// Code generated by internal/gen from samples/folder/main.go; DO NOT EDIT.

package scenarios

import (
	"errors"

	v1 "example.com/api/v1"
)

// drivers is a driver.
type drivers struct{}

func (drivers) Name(o *v1.Thing) (string, error) {
	// Why it fails.
	return "", errors.New(o.Name)
}
`
	got, err := partOf(source, folderSample, "scenarios", ofType("drivers"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}
