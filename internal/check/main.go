// Command check looks at what changed since the last commit: it vets, and so compiles, the packages with changed files and all
// that depend on them, lints those with changed files, and runs their tests, those of the packages that import them, and those of
// internal/arch, all in the short form. Tests of importing packages begin for a minute at most; check says which it left out.
//
//	go run ./internal/check
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// most is how long tests of packages that import what changed may begin.
const most = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	files, err := changed(ctx)
	if err != nil {
		return err
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	r, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	p := plan(all, r, files)
	if len(p.changed) == 0 {
		fmt.Println("nothing changed since the last commit")
		return nil
	}
	linter, err := output(ctx, []string{"GOWORK=off"}, "go", "tool", "-modfile=go.tools.mod", "-n", "golangci-lint")
	if err != nil {
		return err
	}
	for _, step := range [][]string{
		append([]string{"go", "vet"}, p.affected...),
		append([]string{strings.TrimSpace(linter), "run", "--new", "--allow-parallel-runners"}, p.folders...),
		append([]string{"go", "test", "-short", "-vet=off"}, p.changed...),
	} {
		if err := do(ctx, step); err != nil {
			return err
		}
	}
	return testImporters(ctx, p.importers)
}

// testImporters tests packages one after the other as long as there is time.
func testImporters(ctx context.Context, packages []string) error {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for i, one := range packages {
		err := do(limited, []string{"go", "test", "-short", "-vet=off", one})
		if limited.Err() != nil && ctx.Err() == nil {
			fmt.Printf("left to make test, after %s: %s\n", most, strings.Join(packages[i:], " "))
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do runs a command that speaks for itself.
func do(ctx context.Context, command []string) error {
	fmt.Println(strings.Join(command, " "))
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its tests
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command[:2], " "), err)
	}
	return nil
}

// changed lists the files that differ from the last commit, by their paths from the repository's root.
func changed(ctx context.Context) ([]string, error) {
	tracked, err := output(ctx, nil, "git", "diff", "--name-only", "HEAD")
	if err != nil {
		return nil, err
	}
	others, err := output(ctx, nil, "git", "ls-files", "--others", "--exclude-standard", "--full-name", ":/")
	return strings.Fields(tracked + others), err
}

// list asks go list for all packages.
func list(ctx context.Context) (all []pkg, err error) {
	text, err := output(ctx, nil, "go", "list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...", "./devcluster/...", "./kubesim/...", "./test/...")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, p)
	}
}

func output(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Stderr = append(cmd.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}
