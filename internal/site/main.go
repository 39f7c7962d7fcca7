// Command site makes a static site of the documents of this repository, without scripts, to be read from a folder or served.
//
//	go run ./internal/site -o dist/site
//
// Its pages are the documents at the root, README.md first, and those in docs. It fails if a link leads nowhere.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(args []string, log io.Writer) error {
	flags := flag.NewFlagSet("site", flag.ContinueOnError)
	flags.SetOutput(log)
	out := flags.String("o", "dist/site", "the folder for the site")
	revision := flags.String("revision", "main", "the branch or tag that links to source code lead to")
	repository := flags.String("repository", ".", "the root of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := render(os.DirFS(*repository), *revision)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(*out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a site is for everybody
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // a site is for everybody
			return err
		}
	}
	fmt.Fprintf(log, "%d files are in %s; begin with index.html\n", len(files), *out)
	return nil
}
